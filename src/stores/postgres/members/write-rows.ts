import type { TaskEvent } from "../../../feed/task-events.ts";
import { type State, states } from "../../../model/task.ts";
import type { OwnerUse } from "../../quotas.ts";
import type { Query } from "../database.ts";
import { type RowUpdate, type TaskRow, updatedColumns } from "../task-rows.ts";
import { arrayOf, toArray } from "./arrays.ts";

/** What is written of several tasks of one owner; each is updated or removed. */
interface RowsWrite {
  owner: string | null;
  updates: readonly { row: Pick<TaskRow, "seq" | "state">; after: RowUpdate }[];
  removals: readonly Pick<TaskRow, "seq" | "state">[];
  /** First those of the updates, in their order. */
  events: readonly TaskEvent[];
  /** How the use of the owner changes. */
  use: OwnerUse;
}

/** Writes locked rows as `writeRow` does, with their events. Returns the number of the newest event. */
export async function writeRows(run: Query, { owner, updates, removals, events, use }: RowsWrite): Promise<number> {
  const more = Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>;
  for (const { row, after } of updates) {
    more[row.state] -= 1;
    more[after.state] += 1;
  }
  for (const { state } of removals) more[state] -= 1;
  const lists = updated.map(([name, type, of]) => [name, toArray(type, updates, ({ after }) => of(after))]);
  const documents = updates.map(({ after }) => after.document);
  // Of a task without `info` the database makes it from the document: half as much is sent.
  const jsons = events.map(({ json }, n) => (json === withoutNoInfo(documents[n]) ? "" : json));
  const [written] = await run<{ number: number }>(rowsStatement, {
    ...Object.fromEntries(lists),
    seqs: toArray("bigint", updates, ({ row }) => row.seq),
    removed: toArray("bigint", removals, ({ seq }) => seq),
    count: events.length,
    types: toArray("json", events, ({ type }) => type),
    taskIds: toArray("json", events, ({ taskId }) => taskId),
    jsons: toArray("json", jsons, (json) => json),
    noInfo,
    eventOwner: owner,
    owner: owner ?? "",
    ...more,
    useQueued: use.queued,
    useRunning: use.running,
    useBytes: use.bytes,
    useRecords: use.records,
  });
  if (written === undefined) throw new Error("unreel.counters must have one row, and has none");
  return written.number;
}

/** What the document of a task without `info` has, and its event has not. */
const noInfo = `"info":null,`;

function withoutNoInfo(document: string | undefined): string | undefined {
  return document?.replaceAll(noInfo, "");
}

/** Name, type and value of each column; texts that are never null are sent as JSON is. */
const updated = Object.entries(updatedColumns).map(
  ([name, [type, of]]) => [name, name === "document" || name === "state" ? "json" : type, of] as const,
);
const updatedNames = updated.map(([name]) => name);

const rowsStatement = `
  WITH updated AS (
    UPDATE unreel.tasks SET ${updatedNames.map((name) => `${name} = given.${name}`).join(", ")}
    FROM unnest(:seqs::bigint[], ${updated.map(([name, type]) => arrayOf(name, type)).join(", ")})
      AS given (known, ${updatedNames.join(", ")})
    WHERE seq = known
  ), removed AS (
    DELETE FROM unreel.tasks WHERE seq = ANY(:removed::bigint[])
  ), counted AS (
    UPDATE unreel.counters SET events = events + :count, counted_events = counted_events + :count,
      queued = queued + :queued, running = running + :running, succeeded = succeeded + :succeeded,
      failed = failed + :failed, canceled = canceled + :canceled
    RETURNING events AS number
  ), published AS (
    INSERT INTO unreel.task_events (number, type, task_id, json, owner)
    SELECT number - :count + ordinal, type, task_id, coalesce(nullif(json, ''), replace(written, :noInfo, '')), :eventOwner
    FROM counted,
      unnest(${["types", "taskIds", "jsons", "document"].map((name) => arrayOf(name, "json")).join(", ")})
        WITH ORDINALITY AS event (type, task_id, json, written, ordinal)
  ), owned AS (
    INSERT INTO unreel.owners AS known (owner, queued, running, bytes, records)
    SELECT :owner, :useQueued, :useRunning, :useBytes, :useRecords FROM counted
    ON CONFLICT (owner) DO UPDATE
    SET queued = known.queued + excluded.queued, running = known.running + excluded.running,
      bytes = known.bytes + excluded.bytes, records = known.records + excluded.records
  )
  SELECT number, pg_notify('unreel_events', number::text) FROM counted`;
