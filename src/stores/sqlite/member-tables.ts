import type { Task } from "../../model/task.ts";
import { parseTask } from "../documents.ts";
import { newColumns } from "../task-writes.ts";
import type { LocalTables } from "../local-members.ts";
import type { NewMessage } from "../outbox.ts";
import { isSameVideo, siteKeyOf, videoKeyOf } from "../video-keys.ts";
import type { Statements } from "./statements.ts";
import { requireTask, type TaskRow, type TaskTable } from "./task-table.ts";

interface MemberTablesDeps {
  sql: Statements;
  tasks: TaskTable;
  outbox: { add(message: NewMessage): void };
}

/** The tables `tasks` and `members`, as collections and their members change. */
export function createMemberTables({ sql, tasks, outbox }: MemberTablesDeps): LocalTables<TaskRow> {
  const find = (seq: number) => sql.taskBySeq.get(seq) as TaskRow | undefined;
  return {
    find,
    require: (id) => requireTask(sql, id),
    findReusable: (task) => findReusable(sql, task),
    room: (owner) => tasks.queueRoom(owner),
    insert: (task, document) => tasks.insert({ ...newColumns(task, document), claimable: 1 }),
    write(row, { stored, message }, claim) {
      if (message !== undefined) outbox.add(message);
      const claimable = claim === "claimable" ? 1 : 0;
      tasks.save(row, { ...row, ...(claim && { claimable, dueAtMs: null, lease: null }), ...stored });
    },
    remove: (row) => tasks.remove(row),
    addPlace(collection, index, task) {
      sql.addPlace.run(collection, index, task);
      sql.countPlace.run(task);
    },
    placesOf: (task) => sql.placesOfTask.all(task) as { collection: number; places: number }[],
    removePlacesOf: (task) => void sql.removePlacesOfTask.run(task),
    removePlacesIn(collection) {
      sql.countOutPlaces.run(collection);
      sql.removePlacesIn.run(collection);
    },
    cancelable: (collection) => (sql.cancelableMembers.all(collection) as { seq: number }[]).map(({ seq }) => seq),
    own: (collection) => (sql.ownMembers.all(collection) as { seq: number }[]).map(({ seq }) => seq),
    ended: (collection, after, limit) =>
      sql.endedMembers.all(collection, after, limit) as { index: number; task: number }[],
  };
}

/** Returns the newest task that is reused instead of this one. */
function findReusable(sql: Statements, task: Task): TaskRow | undefined {
  const key = videoKeyOf(task.url, task.options, task.owner);
  const bySite = sql.reusableBySite.all(siteKeyOf(task));
  const found = [...sql.reusableByVideo.all(key), ...sql.reusableByPage.all(key), ...bySite] as unknown as TaskRow[];
  return found.toSorted((a, b) => b.seq - a.seq).find((row) => isReusable(row, task));
}

/** A damaged record is none. */
function isReusable(row: TaskRow, task: Task): boolean {
  try {
    return isSameVideo(parseTask(row), task);
  } catch {
    return false;
  }
}
