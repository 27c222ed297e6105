import { randomUUID } from "node:crypto";
import type { Task } from "../../../model/task.ts";
import { growDocument, type GrowthStep, parseHeld, type TaskWrite, updateDocument } from "../../task-writes.ts";
import {
  ChangesByCollection,
  growthAfter,
  growthAfterRetry,
  maxPlaces,
  newMembers,
  membersAtOnce,
  isRetried,
  retryChange,
} from "../../member-rules.ts";
import type { Grown, Growing } from "../../store-types.ts";
import { isSameVideo } from "../../video-keys.ts";
import { tryParseTask } from "../../documents.ts";
import { asText, type Sql, type Transaction } from "../database.ts";
import { lockFreeInQueue } from "../existing-rows.ts";
import { insertTasks, toInsert } from "../task-inserts.ts";
import { lockRow, taskColumns, type TaskRow, type NewRow } from "../task-rows.ts";
import {
  type EventNumbers,
  followAll,
  lockFollowers,
  lockOwnerOf,
  lockRows,
  type MemberDeps,
  readChanges,
  type RowChange,
  writeChanges,
} from "./member-rows.ts";
import { inTurns, lockReusable, type Reusable } from "./reuse.ts";

interface GrowDeps extends MemberDeps {
  maxQueued: number;
}

/** Adds members as `TaskStore.grow` says. */
export async function growAndCommit(
  deps: GrowDeps,
  sql: Transaction,
  id: string,
  given: Growing,
): Promise<Grown & EventNumbers> {
  await lockOwnerOf(sql, id);
  const known = given.isReusing ? await lockReusable(sql, given.members, maxPlaces) : [];
  const row = await lockRow(sql, id);
  const before = parseHeld(row, given.lease);
  const growing = { ...given, members: newMembers(before, given) };
  const plan = planMembers(growing, known, await lockFreeInQueue(sql, row.owner, deps.maxQueued));
  const added = plan.places.length;
  const seqs = await insertMembers(sql, plan.inserts, deps);
  await addPlaces(sql, row.seq, plan.places, seqs);
  const changes = new ChangesByCollection();
  for (const { after } of plan.places) changes.add(row.seq, { before: undefined, after }, 1);
  const growth = growthAfter(before, growing, added);
  const step = { changes: changes.take(row.seq), growth, warnings: growing.warnings };
  const grown = await endStep(deps, sql, row, before, step);
  const { number } = await writeChanges(sql.queryAndCommit, sql, [grown], deps);
  const { task } = grown.written;
  return { task, isWhole: added === growing.members.length, number, count: plan.inserts.length + 1 };
}

/** Queues members again as `TaskStore.retryMembers` says. */
export async function retryAndCommit(
  deps: GrowDeps,
  sql: Transaction,
  id: string,
  lease: string,
): Promise<Grown & EventNumbers> {
  const { jobs, now, damage, maxQueued } = deps;
  await lockOwnerOf(sql, id);
  const ended = await lockEnded(sql, id);
  const members = ended.flatMap((each) => each.row ?? []);
  const followers = await lockFollowers(sql, members, "queued");
  const row = await lockRow(sql, id);
  const before = parseHeld(row, lease);
  const free = await lockFreeInQueue(sql, row.owner, maxQueued);
  const refused = members[free];
  const end = refused === undefined ? ended.length : ended.findIndex((each) => each.row === refused);
  const taken = ended.slice(0, end);
  const retried: (RowChange & { written: TaskWrite })[] = [];
  for await (const member of inTurns(members.slice(0, free))) {
    const written = damage.unlessDamaged(member, () => updateDocument(member, retryChange, {}, now()));
    if (written !== undefined) retried.push({ row: member, written, held: { job: randomUUID(), lease: null } });
  }
  const queued = retried.map(({ row: member, held }) => ({ ...member, ...held }));
  await jobs.add(sql, queued);
  const changes = await readChanges(sql, queued, "queued");
  const growth = growthAfterRetry(before, ended, taken.at(-1)?.index);
  const grown = await endStep(deps, sql, row, before, { changes: changes.take(row.seq), growth });
  const others = followers.filter((other) => other.row.seq !== row.seq);
  const followed = followAll(
    others.map((other) => ({ ...other, changes: changes.take(other.row.seq) })),
    deps,
  );
  const all = [...retried, grown, ...followed];
  const { number } = await writeChanges(sql.queryAndCommit, sql, all, deps);
  return { task: grown.written.task, isWhole: taken.length === ended.length, number, count: all.length };
}

/** Returns the collection after a step; if nothing is left to be done, its job is removed. */
async function endStep(
  { jobs, now }: GrowDeps,
  sql: Sql,
  row: TaskRow,
  before: Task,
  step: GrowthStep,
): Promise<RowChange & { written: TaskWrite }> {
  const written = growDocument(row, before, step, now());
  if (step.growth !== null) return { row, written, held: row };
  if (row.job !== null) await jobs.remove(sql, row.job);
  return { row, written, held: { job: null, lease: null } };
}

/** A place of a collection that is added: of a task that exists, or of one that is inserted. */
interface Place {
  index: number;
  after: Task["state"];
  seq: number | undefined;
  insert: NewRow | undefined;
}

/** Chooses what becomes of the members, up to the first one that may not be queued. */
function planMembers({ members, isReusing }: Growing, known: readonly Reusable[], free: number) {
  const fresh: { insert: NewRow; task: Task }[] = [];
  const places: Place[] = [];
  const taken = new Map(known.map((each) => [each, each.row.memberships]));
  for (const { index, task } of members) {
    const found = known.find((each) => taken.get(each)! < maxPlaces && isSameVideo(each.task, task));
    const isFree = ({ insert }: { insert: NewRow }) => insert.memberships < maxPlaces;
    const made = isReusing && !found ? fresh.find((each) => isFree(each) && isSameVideo(each.task, task)) : undefined;
    if (found === undefined && made === undefined && fresh.length >= free) break;
    const insert = found ? undefined : (made?.insert ?? toInsert(task));
    if (insert !== undefined && made === undefined) fresh.push({ insert, task });
    if (insert !== undefined) insert.memberships += 1;
    if (found !== undefined) taken.set(found, taken.get(found)! + 1);
    places.push({ index, after: found?.row.state ?? task.state, seq: found?.row.seq, insert });
  }
  return { places, inserts: fresh.map(({ insert }) => insert) };
}

/** Returns the `seq` of each task that is inserted, by its id. */
async function insertMembers(
  sql: Sql,
  inserts: readonly NewRow[],
  { jobs }: GrowDeps,
): Promise<ReadonlyMap<string, number>> {
  if (inserts.length === 0) return new Map();
  const { rows } = await insertTasks(sql, inserts);
  await jobs.add(sql, rows);
  return new Map(rows.map(({ id, seq }) => [id, seq]));
}

async function addPlaces(
  sql: Sql,
  collection: number,
  places: readonly Place[],
  inserted: ReadonlyMap<string, number>,
): Promise<void> {
  if (places.length === 0) return;
  const seqs = places.map(({ seq, insert }) => seq ?? inserted.get(insert?.id ?? ""));
  const indexes = places.map(({ index }) => index);
  await sql.query(
    `INSERT INTO unreel.members (collection, place, task)
     SELECT :collection, place, task FROM unnest(:indexes::integer[], :seqs::bigint[]) AS given (place, task)`,
    { collection, indexes, seqs },
  );
  const known = places.flatMap(({ seq }) => seq ?? []);
  if (known.length === 0) return;
  await sql.query(
    `UPDATE unreel.tasks SET memberships = memberships + more
     FROM (SELECT task, count(*) AS more FROM unnest(:known::bigint[]) AS given (task) GROUP BY task) AS given
     WHERE seq = task`,
    { known },
  );
}

/**
 * Returns places of failed and canceled members that are to be queued again, by index, with the members locked: undefined if one waits or
 * runs by now, or has an earlier place.
 */
async function lockEnded(sql: Sql, id: string): Promise<{ index: number; row: TaskRow | undefined }[]> {
  const [collection] = await sql.query<TaskRow>(`SELECT ${taskColumns} FROM unreel.tasks WHERE id = :id`, {
    id: asText(id),
  });
  if (collection === undefined) return [];
  const after = tryParseTask(collection)?.growth?.retried ?? 0;
  const places = await sql.query<{ index: number; task: number }>(
    `SELECT place AS index, task FROM unreel.members JOIN unreel.tasks ON seq = task
     WHERE collection = :collection AND place > :after AND state IN ('failed', 'canceled')
     ORDER BY place LIMIT ${membersAtOnce}`,
    { collection: collection.seq, after },
  );
  const seqs = places.map(({ task }) => task);
  const left = new Map(
    (await lockRows(sql, seqs)).filter(({ state }) => isRetried(state)).map((row) => [row.seq, row]),
  );
  return places.map(({ index, task }) => {
    const row = left.get(task);
    left.delete(task);
    return { index, row };
  });
}
