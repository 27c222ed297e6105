import { Value } from "@sinclair/typebox/value";
import { noTasks } from "../feed/collection-changes.ts";
import { newTask } from "../feed/task-changes.ts";
import { ServiceError } from "../model/errors.ts";
import type { Entry } from "../model/entry.ts";
import { PageInfo, pageUrlOf, publicInfo } from "../model/page-info.ts";
import type { Task } from "../model/task.ts";
import type { CollectionWarning, Growth } from "../model/collection.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { NewMember } from "../stores/store-types.ts";
import { videoOptions } from "../stores/video-keys.ts";
import { chooseEntries, type EntryChoice, metadataOf } from "./choice/entries.ts";
import { readInTurn, type ReadingTurns } from "./read-in-turn.ts";
import type { TaskRun } from "./task-lease.ts";

/** No further member may be queued now. */
export class GrowthPaused extends Error {
  override readonly name = "GrowthPaused";
}

export interface GrowCollectionDeps extends ReadingTurns {
  resolver: Resolver;
  /** Members that a collection may have. */
  maxEntries: number;
  now: () => Date;
}

/**
 * Makes a collection of a task whose page is a playlist, or goes on where an earlier run has stopped. If the collection was retried, its failed
 * and canceled members are queued again. Then the entries are read slice by slice, and those that are wanted become members. Each
 * step is stored with the place where the next one begins. At the end no worker holds the collection any more.
 *
 * @param found The page with the first entries, if it has just been read.
 * @throws GrowthPaused if the queue or the quota of the owner is full; ServiceError of the resolver; `no_media` if none of
 * the wanted entries is there; Interruption
 */
export async function growCollection(
  run: TaskRun,
  found: PageInfo | undefined,
  deps: GrowCollectionDeps,
): Promise<void> {
  const { taskLease } = run;
  const { task } = run.claim;
  let { growth } = task;
  let info = task.info;
  if (found !== undefined) {
    growth = { slice: { offset: 0, made: 0 } };
    info = withoutEntries(found);
    await taskLease.updateWithRetry({ kind: "collection", counts: noTasks, growth, info }, { stalledCount: 0 });
  }
  while (growth?.retried !== undefined) {
    const { task: retried, isWhole } = await taskLease.retryMembers();
    if (!isWhole) throw new GrowthPaused();
    ({ growth } = retried);
  }
  const choice = chooseEntries(task.options.entries, growth?.slice?.urls);
  let page = found;
  for (let collection = { ...task, info }; growth?.slice !== undefined; page = undefined) {
    page ??= await readSlice(run, growth.slice.next, deps);
    const step = planStep(collection, growth.slice, page, choice, deps);
    const { task: grown, isWhole } = await taskLease.grow(step);
    if (!isWhole) throw new GrowthPaused();
    collection = grown;
    ({ growth } = grown);
  }
}

async function readSlice(run: TaskRun, next: string | undefined, deps: GrowCollectionDeps): Promise<PageInfo> {
  const { signal } = run.controller;
  const { url, owner } = run.claim.task;
  signal.throwIfAborted();
  const read = () => deps.resolver.resolve(new URL(url), { signal, owner, entriesCursor: next });
  const page: unknown = await readInTurn(read, run, deps);
  signal.throwIfAborted();
  if (Value.Check(PageInfo, page)) return page;
  throw new ServiceError("no_media", `the resolver ${deps.resolver.name} does not look for entries`);
}

/** Returns the step that adds the wanted entries of a slice, and where the next one begins. */
function planStep(
  task: Task,
  { offset, made }: NonNullable<Growth["slice"]>,
  { entries = [], entries_next: next }: PageInfo,
  choice: EntryChoice,
  { maxEntries, now }: GrowCollectionDeps,
) {
  const end = offset + entries.length;
  const wanted = entries
    .map((entry, n) => ({ entry, index: offset + n + 1 }))
    .filter(({ entry, index }) => index <= maxEntries && choice.isWanted(entry, index) && index > made);
  const isLimited = !choice.isComplete(maxEntries) && (end > maxEntries || (end === maxEntries && next !== undefined));
  const { members, lost } = toMembers(task, wanted, now());
  const isLast = next === undefined || entries.length === 0 || end >= maxEntries || choice.isComplete(end);
  const urls = choice.left();
  const growth: Growth | null = isLast ? null : { slice: { next, offset: end, made: end, ...(urls && { urls }) } };
  const total = members.length + Object.values(task.counts ?? noTasks).reduce((sum, count) => sum + count, 0);
  if (isLast && total === 0) throw nothingError(task, end);
  const missing = isLast && !isLimited ? choice.missingAfter(end) : undefined;
  const warnings: CollectionWarning[] = [
    ...(task.warnings ?? []),
    ...(isLimited ? [limitedWarning(maxEntries)] : []),
    ...[lost, missing].flatMap((message) =>
      message === undefined ? [] : [{ code: "entries_missing", message } satisfies CollectionWarning],
    ),
  ];
  return { members, isReusing: task.options.if_exists !== "new", growth, warnings: warnings.slice(0, maxWarnings) };
}

const maxWarnings = 10;

function limitedWarning(maxEntries: number): CollectionWarning {
  return { code: "entries_limited", message: `only the first ${maxEntries} entries are members (MAX_ENTRIES)` };
}

function nothingError({ url, options }: Task, entries: number): ServiceError {
  const asked = JSON.stringify(options.entries ?? "all").slice(0, 100);
  const rule = `none of the ${entries} entries of ${url.slice(0, 200)} that can be fetched is among ${asked}`;
  return new ServiceError("no_media", rule);
}

/** Returns the members that these entries become; `lost` says which have no URL of a page. */
function toMembers(
  { id, options, owner, traceparent, tracestate, info }: Task,
  wanted: readonly { entry: Entry; index: number }[],
  at: Date,
): { members: NewMember[]; lost: string | undefined } {
  const title = info?.title ?? null;
  const referrer = info === null ? undefined : referrerOf(info);
  const own = videoOptions(options);
  const lost: number[] = [];
  const members = wanted.flatMap(({ entry, index }): NewMember[] => {
    const url = URL.parse(entry.url);
    if (url?.protocol !== "https:" && url?.protocol !== "http:") {
      lost.push(index);
      return [];
    }
    const task = newTask(url.href, own, at, owner, { traceparent, tracestate });
    const { video } = entry;
    const metadata = metadataOf(entry);
    const collection = { id, index, title, ...(referrer && { referrer }), ...(metadata && { entry: metadata }) };
    return [{ index, task: { ...task, collection, ...(video && { video }) } }];
  });
  const which = lost.slice(0, 20).join(", ");
  return { members, lost: lost.length === 0 ? undefined : `entries without a URL that can be fetched: ${which}` };
}

/** Where pages state lists of which a browser opens the entries; a feed and an M3U are no pages, and yt-dlp knows what to send. */
const pageSources: ReadonlySet<string | undefined> = new Set(["html", "player", "json-ld", "microdata"]);

function referrerOf(info: PageInfo): string | undefined {
  return pageSources.has(info.sources["entries"]) ? new URL(pageUrlOf(info)).origin : undefined;
}

/** The entries are members. */
function withoutEntries(page: PageInfo): PageInfo {
  const { entries: _, entries_next: __, ...info } = page;
  return publicInfo(info);
}
