import type { TaskEvent } from "../../../feed/task-events.ts";
import { type State, states } from "../../../model/task.ts";
import { addUse, noUse, type OwnerUse } from "../../quotas.ts";
import type { Query, Sql } from "../database.ts";
import { addedUse, noCountersError, type RowUpdate, type TaskRow, updatedColumns } from "../task-rows.ts";

/** A locked row, and what is written of it. */
export interface RowWrite {
  row: Pick<TaskRow, "seq" | "state">;
  after: RowUpdate;
}

interface RowEvent extends Pick<TaskEvent, "type" | "taskId"> {
  /** Of the task's row, if `json` is empty: the database makes the event from the document there. */
  seq: number | null;
  json: string;
}

/** What was written of several tasks of one owner. */
export interface WrittenRows {
  owner: string | null;
  /** From which state to which; undefined: it was removed. */
  moves: readonly { before: State; after: State | undefined }[];
  events: readonly RowEvent[];
  /** How the use of the owner changes. */
  use: OwnerUse;
}

/** Writes locked rows; `countAndPublish` must follow. Others' writes do not wait for it. */
export async function updateRows({ query }: Sql, writes: readonly RowWrite[]): Promise<void> {
  if (writes.length === 0) return;
  const lists = updated.map(([name, type, of]) => [name, toArray(type, writes, ({ after }) => of(after))]);
  const seqs = toArray("bigint", writes, ({ row }) => row.seq);
  await query(updateStatement, { ...Object.fromEntries(lists), seqs });
}

/** How the database is after a write. */
export interface Written {
  /** Number of the newest event. */
  number: number;
  /** Of the owner; zeros if the write does not change it. */
  use: OwnerUse;
  /** Queued tasks of all owners. */
  waiting: number;
}

/**
 * Counts and publishes what was written of rows. As in every write the counters come last,
 * one row for all, and after them the owner's row: from then on other writes wait for the commit, so events are numbered
 * in the order of the commits.
 *
 * @param run `queryAndCommit` of the transaction, or `query` if the caller first checks the result.
 * @param isClaim Whether this is the owner's last claim.
 */
export async function countAndPublish(
  run: Query,
  { owner, moves, events, use }: WrittenRows,
  isClaim = false,
): Promise<Written> {
  const more = Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>;
  for (const { before, after } of moves) {
    more[before] -= 1;
    if (after !== undefined) more[after] += 1;
  }
  const [written] = await run<Omit<Written, "use"> & Record<keyof OwnerUse, number | null>>(publishStatement, {
    count: events.length,
    seqs: toArray("bigint", events, ({ seq }) => seq),
    types: toArray("json", events, ({ type }) => type),
    taskIds: toArray("json", events, ({ taskId }) => taskId),
    jsons: toArray("json", events, ({ json }) => json),
    noInfo,
    eventOwner: owner,
    owner: owner ?? "",
    ...more,
    isClaim,
    hasUse: isClaim || Object.values(use).some((change) => change !== 0),
    useQueued: use.queued,
    useRunning: use.running,
    useBytes: use.bytes,
    useRecords: use.records,
  });
  if (written === undefined) throw noCountersError();
  const { number, waiting, queued, running, bytes, records } = written;
  const newUse = { queued: queued ?? 0, running: running ?? 0, bytes: bytes ?? 0, records: records ?? 0 };
  return { number, waiting, use: newUse };
}

/** Returns rows of one owner together, in their order. */
export function joinWrittenRows(rows: readonly WrittenRows[]): WrittenRows {
  return {
    owner: rows[0]?.owner ?? null,
    moves: rows.flatMap(({ moves }) => moves),
    events: rows.flatMap(({ events }) => events),
    use: rows.reduce((sum, { use }) => addUse(sum, use), noUse),
  };
}

/** Returns the event of a row that is written once: if the database can make it from the document, without its text. */
export function eventOfWrite(
  { seq }: Pick<TaskRow, "seq">,
  document: string,
  { type, taskId, json }: TaskEvent,
): RowEvent {
  return json === document.replaceAll(noInfo, "") ? { type, taskId, seq, json: "" } : { type, taskId, seq: null, json };
}

/** What the document of a task without `info` has, and its event has not: half as much is sent. */
const noInfo = `"info":null,`;

/** Name, type and value of each column; texts that are never null are sent as JSON is. */
const updated = Object.entries(updatedColumns).map(
  ([name, [type, of]]) => [name, name === "document" || name === "state" ? "json" : type, of] as const,
);
const updatedNames = updated.map(([name]) => name);

const updateStatement = `
  UPDATE unreel.tasks SET ${updatedNames.map((name) => `${name} = given.${name}`).join(", ")}
  FROM unnest(:seqs::bigint[], ${updated.map(([name, type]) => arrayOf(name, type)).join(", ")})
    AS given (known, ${updatedNames.join(", ")})
  WHERE seq = known`;

const publishStatement = `
  WITH counted AS (
    UPDATE unreel.counters SET events = events + :count, counted_events = counted_events + :count,
      queued = queued + :queued, running = running + :running, succeeded = succeeded + :succeeded,
      failed = failed + :failed, canceled = canceled + :canceled
    RETURNING events AS number, queued AS waiting
  ), published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT number - :count + ordinal, type, task_id, coalesce(nullif(json, ''), replace(document, :noInfo, '')), :eventOwner
    FROM counted, unnest(:seqs::bigint[], ${["types", "taskIds", "jsons"].map((name) => arrayOf(name, "json")).join(", ")})
        WITH ORDINALITY AS event (known, type, task_id, json, ordinal)
      LEFT JOIN unreel.tasks ON seq = known
  ), owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes, records, claimed)
    SELECT :owner, :useQueued, :useRunning, :useBytes, :useRecords, CASE WHEN :isClaim THEN number ELSE 0 END
    FROM counted WHERE :hasUse
    ON CONFLICT (owner) DO UPDATE SET ${addedUse}, claimed = greatest(known.claimed, excluded.claimed)
    RETURNING queued, running, bytes, records
  )
  SELECT number, waiting, queued, running, bytes, records, pg_notify('unreel_events', number::text)
  FROM counted LEFT JOIN owned ON true`;

type Value = string | number | null;

/** Between texts without it, such as JSON, in which it would be escaped (RFC 7464), names and ids. */
const separator = "\u001E";

/** Types whose values have no character that an array escapes. */
const plainTypes: ReadonlySet<string> = new Set(["bigint", "integer", "uuid"]);

/**
 * Returns a parameter for `arrayOf` with the same type: the driver would escape each quote of each value. All of them null are one null,
 * which `unnest` repeats beside other arrays.
 */
export function toArray<Row>(
  type: string,
  rows: readonly Row[],
  of: (row: Row) => Value,
): string | readonly Value[] | null {
  const values = rows.map(of);
  if (values.length > 0 && values.every((value) => value === null)) return null;
  if (type === "json") return values.join(separator);
  return plainTypes.has(type) ? `{${values.map((value) => value ?? "NULL").join()}}` : values;
}

/** Returns SQL that makes an array of a parameter; `json`: of texts without the separator, none of which is null. */
function arrayOf(name: string, type: string): string {
  return type === "json" ? `string_to_array(:${name}, E'\\x1E')` : `:${name}::${type}[]`;
}
