import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { FastifyRequest } from "fastify";
import { newTask } from "../../feed/task-changes.ts";
import { inputError, ServiceError } from "../../model/errors.ts";
import { type Task, TaskOptions } from "../../model/task.ts";
import { parseTraceContext, type TraceContext } from "../../model/trace-context.ts";
import type { GuardedClient } from "../../net/http/http-client.ts";
import type { Resolver } from "../../resolvers/resolver.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { Reused } from "../../stores/store-types.ts";
import { countLines } from "../server/header-fields.ts";
import { parsePageUrl, PageUrl } from "./page-url.ts";

/** An unknown option would have no effect. */
export const NewTaskOptions = Type.Object(TaskOptions.properties, {
  title: "NewTaskOptions",
  description: TaskOptions.description!,
  additionalProperties: false,
});

export const NewTaskBody = Type.Object({ url: PageUrl, options: Type.Optional(NewTaskOptions) }, { title: "NewTask" });

export const NewTaskHeaders = Type.Object({
  traceparent: Type.Optional(
    Type.String({ description: "W3C Trace Context: goes into the log of the run, and on to webhooks" }),
  ),
  tracestate: Type.Optional(
    Type.String({ description: "goes on to webhooks with `traceparent`; at most 512 characters of it" }),
  ),
  "idempotency-key": Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: "valid for 24 hours: the same key and body get the same response, another body gets 422",
    }),
  ),
});

export interface NewTaskDeps {
  store: TaskStore;
  /** Tells which pages are refused at once. */
  client: Pick<GuardedClient, "findHostProblem">;
  resolver: Pick<Resolver, "identify">;
  /** What tasks have of options that their request does not state. */
  defaultOptions: TaskOptions;
}

interface NewTaskRequest {
  /** Of the task; undefined: a new one. */
  id?: string | undefined;
  /** As the request states them. */
  options: TaskOptions;
  owner: string | undefined;
  /** Header fields of the request; invalid ones are ignored. */
  trace: TraceContext;
  /** Of the request and, if it makes several tasks, of the task among them. */
  idempotencyKey: string | undefined;
}

/**
 * Stores a task for the page at `url`; see `TaskStore.create`, and `TaskStore.reuse` for a page whose task may exist. A request for entries
 * makes a collection of its own.
 *
 * @throws ServiceError `address_blocked`; of the store
 */
export async function createTask(
  url: URL,
  { id, options: given, owner, trace, idempotencyKey: key }: NewTaskRequest,
  { store, client, resolver, defaultOptions }: NewTaskDeps,
): Promise<Reused> {
  const blocked = client.findHostProblem(url.hostname);
  if (blocked !== undefined) throw blocked;
  const idempotency = key === undefined ? undefined : { key, fingerprint: hash(url.href, given) };
  const options = withDefaults(given, defaultOptions);
  const made = newTask(url.href, options, new Date(), owner, parseTraceContext(trace));
  const task = { ...made, id: id ?? made.id };
  if (options.if_exists === "reuse" && options.entries === undefined) {
    const video = await identify(url, owner, resolver);
    return store.reuse({ ...task, ...(video && { video }) }, idempotency);
  }
  return { task: await store.create(task, idempotency), isNew: true };
}

/** Which format a task takes is chosen by all of these together. */
const formatOptions = ["format_id", "max_height", "audio_only"] as const;

/** Returns the options of a request with those of `defaults` that it leaves open. */
export function withDefaults(given: TaskOptions, defaults: TaskOptions): TaskOptions {
  const { max_height: _height, audio_only: _audio, ...others } = defaults;
  const isFormatChosen = formatOptions.some((name) => given[name] !== undefined);
  return inFixedOrder({ ...(isFormatChosen ? others : defaults), ...given });
}

/** After that a video is found by its URL alone. */
const identifyLimitMs = 2_000;

/** Returns which video the URL leads to; undefined if that is unknown, or cannot be found out in time. */
async function identify(
  url: URL,
  owner: string | undefined,
  resolver: NewTaskDeps["resolver"],
): Promise<Task["video"]> {
  const signal = AbortSignal.timeout(identifyLimitMs);
  try {
    return await resolver.identify?.(url, signal, owner);
  } catch (error) {
    if (signal.aborted || error instanceof ServiceError) return undefined;
    throw error;
  }
}

/**
 * Returns the key of the request; undefined if it has none.
 *
 * @throws ServiceError `invalid_request` if it has several: Node joins their lines, as if they were one
 */
export function readIdempotencyKey({ headers, raw }: Pick<FastifyRequest, "headers" | "raw">): string | undefined {
  const { "idempotency-key": key } = headers as { "idempotency-key"?: string };
  const lines = key === undefined ? 0 : countLines(raw.rawHeaders, "idempotency-key");
  if (lines <= 1) return key;
  throw inputError("headers", { pointer: "/idempotency-key", detail: `must be given once, got ${lines} lines` });
}

/** Returns the status of the response that has the task. */
export function statusOfNew({ isNew }: Reused): 200 | 201 {
  return isNew ? 201 : 200;
}

/** Where a request has its options, for its faults. */
interface OptionsPlace {
  part: "body" | "query";
  /** JSON Pointer to the options there. */
  pointer: string;
}

/**
 * Returns the options in the order of their schema, so that equal ones have one fingerprint.
 *
 * @param defaults What the task has of options that are not given.
 * @param place Default: `options` in the body.
 * @throws ServiceError `invalid_request` for ranges that overlap or are not in order; for "all" in a list of subtitles; for `skip_mode` without
 * `skip`; for entries that are neither ranges from a lower to a higher number nor URLs
 */
export function readOptions(
  given: TaskOptions | undefined,
  defaults: TaskOptions,
  place: OptionsPlace = { part: "body", pointer: "/options" },
): TaskOptions {
  const options = inFixedOrder(given);
  checkRanges(options, place);
  checkSubtitles(options, place);
  checkSkipMode({ ...defaults, ...options }, options, place);
  checkEntries(options, place);
  return options;
}

/** Of times that a client has added up, seconds. */
const roundingS = 1e-6;

/** @throws ServiceError `invalid_request` unless each range ends after it starts, and the next one starts after that. */
function checkRanges({ ranges = [] }: TaskOptions, { part, pointer: options }: OptionsPlace): void {
  for (const [index, { start, end }] of ranges.entries()) {
    const before = ranges[index - 1];
    const pointer = `${options}/ranges/${index}`;
    if (end !== null && end <= start)
      throw inputError(part, { pointer: `${pointer}/end`, detail: `must be more than "start", ${start}, got ${end}` });
    if (before !== undefined && start < (before.end ?? Infinity) - roundingS) {
      const rule =
        before.end === null ? "after a range without an end" : `before the end of the range before, ${before.end}`;
      throw inputError(part, { pointer: `${pointer}/start`, detail: `must not be ${rule}, got ${start}` });
    }
  }
}

/** @throws ServiceError `invalid_request` for a list with "all", which as a tag is the language Allar. */
function checkSubtitles({ subtitles }: TaskOptions, { part, pointer: options }: OptionsPlace): void {
  const languages = typeof subtitles === "object" ? subtitles.languages : [];
  if (typeof languages === "string" || !languages.some((tag) => tag.toLowerCase() === "all")) return;
  const detail = `must be "all" itself, or a list without it, got ${JSON.stringify(languages)}`;
  throw inputError(part, { pointer: `${options}/subtitles/languages`, detail });
}

/** @throws ServiceError `invalid_request` for a mode without what is skipped: it would have no effect. */
function checkSkipMode({ skip }: TaskOptions, given: TaskOptions, { part, pointer: options }: OptionsPlace): void {
  if (given.skip_mode === undefined || skip !== undefined) return;
  throw inputError(part, { pointer: `${options}/skip_mode`, detail: `needs "skip", which says what is skipped` });
}

/** @throws ServiceError `invalid_request` */
function checkEntries({ entries }: TaskOptions, { part, pointer: options }: OptionsPlace): void {
  if (entries === undefined) return;
  const pointer = `${options}/entries`;
  if (typeof entries === "string") {
    const backward = entries.split(",").find((range) => isBackward(range));
    if (backward === undefined) return;
    throw inputError(part, { pointer, detail: `must have no range that ends before it begins, got ${backward}` });
  }
  for (const [index, url] of entries.entries()) parsePageUrl(url, part, `${pointer}/${index}`);
}

function isBackward(range: string): boolean {
  const [first, last = ""] = range.split("-");
  return last !== "" && Number(last) < Number(first);
}

const optionNames = Object.keys(TaskOptions.properties) as (keyof TaskOptions)[];

function inFixedOrder(given: TaskOptions | undefined): TaskOptions {
  if (given === undefined) return {};
  const { ranges, subtitles } = given;
  const ordered = {
    ...given,
    ...(ranges && { ranges: ranges.map(({ start, end }) => ({ start, end })) }),
    ...(typeof subtitles === "object" && { subtitles: languagesFirst(subtitles) }),
  };
  return Object.fromEntries(
    optionNames.filter((name) => Object.hasOwn(given, name)).map((name) => [name, ordered[name]]),
  );
}

const languagesFirst = <T extends { languages: unknown }>({ languages, ...others }: T) => ({ languages, ...others });

function hash(url: string, options: TaskOptions): string {
  return createHash("sha256")
    .update(JSON.stringify([url, options]))
    .digest("base64url");
}
