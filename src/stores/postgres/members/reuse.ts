import { setImmediate as nextTurn } from "node:timers/promises";
import { isActive, type Task } from "../../../model/task.ts";
import { parseTask, tryParseTask } from "../../documents.ts";
import { isSameVideo, searchKeysOf } from "../../video-keys.ts";
import type { Sql } from "../database.ts";
import type { TaskRow } from "../task-rows.ts";
import { lockRows } from "./member-rows.ts";

/** A task that is reused, locked. */
export interface Reusable {
  row: TaskRow;
  task: Task;
}

/**
 * Returns the tasks that are reused, the newest first: those that these would only repeat, and that have fewer places of collections; default:
 * any number.
 */
export async function lockReusable(
  sql: Sql,
  wanted: readonly { task: Task }[],
  places = Infinity,
): Promise<Reusable[]> {
  const searched = wanted.map(({ task }) => searchKeysOf(task));
  const keys = [...new Set(searched.flatMap(({ video }) => video))];
  const siteKeys = [...new Set(searched.flatMap(({ site }) => site))];
  const candidates = await sql.query<Pick<TaskRow, "seq" | "id" | "document" | "memberships">>(selectReusable, {
    keys,
    siteKeys,
  });
  const found = candidates.filter(({ memberships }) => memberships < places);
  const seqs: number[] = [];
  let others = wanted;
  for await (const { seq, id, document } of inTurns(found)) {
    if (others.length === 0) break;
    const known = tryParseTask({ id, document });
    const left = others.filter(({ task }) => known === undefined || !isSameVideo(known, task));
    if (left.length < others.length) seqs.push(seq);
    others = left;
  }
  const rows = (await lockRows(sql, seqs)).filter(({ state, bytes }) => isActive(state) || bytes > 0);
  const reusable: Reusable[] = [];
  for await (const row of inTurns(rows.toReversed())) {
    reusable.push({ row, task: parseTask(row) });
  }
  return reusable;
}

/** The newest ones of each key: several, as keys are hashes, and an owner may have thousands for one page. */
const reusable = (column: string, keys = ":keys") => `SELECT seq FROM (
  SELECT seq, row_number() OVER (PARTITION BY ${column} ORDER BY seq DESC) AS place FROM unreel.tasks
  WHERE ${column} = ANY(${keys}::bigint[]) AND (state IN ('queued', 'running') OR bytes > 0)
) AS found WHERE place <= 16`;
const selectReusable = `SELECT seq, id, document, memberships FROM unreel.tasks WHERE seq IN (
  ${reusable("video")} UNION ${reusable("page_video")} UNION ${reusable("site_video", ":siteKeys")}
) ORDER BY seq DESC`;

/** Milliseconds: to parse a long record takes two. */
const maxMs = 5;

/** Yields the items; once what is done with them has taken 5 ms, other work of the process has its turn before the next one. */
export async function* inTurns<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  let endMs = performance.now() + maxMs;
  for (const item of items) {
    if (performance.now() >= endMs) {
      await nextTurn();
      endMs = performance.now() + maxMs;
    }
    yield item;
  }
}
