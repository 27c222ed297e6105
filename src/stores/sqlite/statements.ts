import type { DatabaseSync, StatementSync } from "node:sqlite";
import { states } from "../../model/task.ts";
import type { ChangedColumns } from "../task-writes.ts";
import { migrations } from "./migrations.ts";

/** What decides whether a claim may take a task. */
export interface ClaimState {
  claimable: 0 | 1;
  /** When the task becomes claimable, by the store's steady clock; null if it is so now or never. */
  dueAtMs: number | null;
  lease: string | null;
}

export const atOnce: ClaimState = Object.freeze({ claimable: 1, dueAtMs: null, lease: null });
export const never: ClaimState = Object.freeze({ claimable: 0, dueAtMs: null, lease: null });
export const heldUntil = (dueAtMs: number, lease: string | null): ClaimState => ({ claimable: 0, dueAtMs, lease });

/** What an update writes of a task. */
export interface SavedTask extends ChangedColumns, ClaimState {}

/** The columns that an insert and an update write. */
const columns = ["state", "claimable", "document", "bytes", "finished_at", "site_video"];

/** Returns the values of the columns; not by name, which would take node:sqlite as long as all else. */
export function columnValues({ state, claimable, document, bytes, finishedAt, siteVideo }: NewTask) {
  return [state, claimable, document, bytes, finishedAt, siteVideo] as const;
}

/** What an insert writes, besides what never changes. */
export type NewTask = Omit<SavedTask, "dueAtMs" | "lease" | "stalledCount" | "idle" | "pageVideo">;

const taskRow = `seq, id, state, owner, host, claimable, due_at AS dueAtMs, lease, deaths AS stalledCount, bytes,
  finished_at AS finishedAt, listed, idle, memberships, video, page_video AS pageVideo, site_video AS siteVideo,
  document`;

/** What a page needs of a task, besides its place; its document is null if it is long, and then read apart. */
const listed = "id, CASE WHEN octet_length(document) <= 16000 THEN document END";

/** The tasks of an owner; each part is read in the order of an index, and SQLite merges them as it reads. */
const tasksOfOwner = states
  .map(
    (state) => `SELECT seq, ${listed} FROM tasks WHERE owner = ?3 AND state = '${state}' AND listed = 1 AND seq < ?1`,
  )
  .join(" UNION ALL ");

const memberRows = "FROM members CROSS JOIN tasks ON tasks.seq = task WHERE collection = ?1";

const recordBytes = "octet_length(document) AS bytes";

/** Another collection than ?1 has the task. */
const isElsewhere = (condition: string) => `EXISTS (
  SELECT 1 FROM members AS other ${condition} WHERE other.task = tasks.seq AND other.collection <> ?1)`;

/** Tasks that are queued, running, or have their file; without their documents, which may be long: one of them is wanted. */
const reusable = (column: string) => `SELECT seq FROM tasks
  WHERE ${column} = ?1 AND (state IN ('queued', 'running') OR bytes > 0)`;

/** Every statement that runs on an open store. Each one finds its rows through an index, if it does not want all. */
export const statements = {
  lastSeq: "SELECT max(seq, ifnull((SELECT max(seq) FROM tasks), 0)) AS seq FROM last_seq",
  keepLastSeq: "UPDATE last_seq SET seq = ?",
  insertTask: `INSERT INTO tasks (seq, id, owner, host, listed, video, ${columns.join(", ")})
    VALUES (?, ?, ?, ?, ?, ?, ${columns.map(() => "?").join(", ")})
    ON CONFLICT (id) DO NOTHING`,
  taskById: `SELECT ${taskRow} FROM tasks WHERE id = ?`,
  taskBySeq: `SELECT ${taskRow} FROM tasks WHERE seq = ?`,
  ownerOfTask: "SELECT owner FROM tasks WHERE id = ?",
  documentById: "SELECT document FROM tasks WHERE id = ?",
  saveTask: `UPDATE tasks SET ${columns.map((name) => `${name} = ?`).join(", ")},
    due_at = ?, lease = ?, deaths = ?, idle = ?, page_video = ? WHERE seq = ?`,
  setDue: "UPDATE tasks SET claimable = 0, due_at = ? WHERE seq = ?",
  deleteTask: "DELETE FROM tasks WHERE seq = ?",

  countState: "SELECT count(*) AS tasks FROM tasks WHERE state = ?",
  queuedTasks: `SELECT seq, id, document FROM tasks WHERE state = 'queued' AND listed = 0
    UNION ALL SELECT seq, id, document FROM tasks WHERE state = 'queued' AND listed = 1 ORDER BY seq`,

  page: `SELECT seq, ${listed} FROM tasks INDEXED BY tasks_listed WHERE listed = 1 AND seq < ?1
    ORDER BY seq DESC LIMIT ?2`,
  pageOfState: `SELECT seq, ${listed} FROM tasks WHERE state = ?3 AND listed = 1 AND seq < ?1
    ORDER BY seq DESC LIMIT ?2`,
  pageOfOwner: `${tasksOfOwner} ORDER BY seq DESC LIMIT ?2`,
  pageOfOwnerAndState: `SELECT seq, ${listed} FROM tasks
    WHERE owner = ?3 AND state = ?4 AND listed = 1 AND seq < ?1 ORDER BY seq DESC LIMIT ?2`,
  pageOfParent: `SELECT place, ${listed} ${memberRows} AND place > ?2
    AND (?4 IS NULL OR state = ?4) ORDER BY place LIMIT ?3`,

  reusableByVideo: `${reusable("video")} ORDER BY seq DESC LIMIT 16`,
  reusableByPage: `${reusable("page_video")} ORDER BY seq DESC LIMIT 16`,
  reusableBySite: `${reusable("site_video")} ORDER BY seq DESC LIMIT 16`,
  addPlace: "INSERT INTO members (collection, place, task) VALUES (?, ?, ?)",
  countPlace: "UPDATE tasks SET memberships = memberships + 1 WHERE seq = ?",
  placesOfTask: "SELECT collection, count(*) AS places FROM members WHERE task = ? GROUP BY collection",
  removePlacesOfTask: "DELETE FROM members WHERE task = ?",
  removePlace: "DELETE FROM members WHERE collection = ? AND place = ?",
  countOutPlace: "UPDATE tasks SET memberships = memberships - 1 WHERE seq = ?",
  cancelableMembers: `SELECT place, tasks.seq, ${recordBytes} ${memberRows} AND place > ?2 AND listed = 0
    AND state IN ('queued', 'running') AND (memberships = 1 OR NOT ${isElsewhere(`CROSS JOIN tasks AS collection
      ON collection.seq = other.collection AND collection.state IN ('queued', 'running')`)}) ORDER BY place LIMIT ?3`,
  membersAfter: `SELECT place, tasks.seq, listed = 0 AND (memberships = 1 OR NOT ${isElsewhere("")}) AS isOwn,
    ${recordBytes} ${memberRows} AND place > ?2 ORDER BY place LIMIT ?3`,
  ownMembersWithFiles: `SELECT tasks.id ${memberRows} AND listed = 0 AND bytes > 0
    AND (memberships = 1 OR NOT ${isElsewhere("")}) ORDER BY place`,
  endedMembers: `SELECT place AS "index", task, ${recordBytes} ${memberRows} AND place > ?2 AND state IN ('failed', 'canceled')
    ORDER BY place LIMIT ?3`,
  endingCollections: "SELECT collection FROM ending_collections",
  endedUpTo: "SELECT place FROM ending_collections WHERE collection = ?",
  keepEnding: "INSERT OR REPLACE INTO ending_collections (collection, place) VALUES (?, ?)",
  dropEnding: "DELETE FROM ending_collections WHERE collection = ?",

  promoteDue: `UPDATE tasks SET claimable = 1 WHERE claimable = 0 AND due_at <= ?
    RETURNING owner, host, state, seq`,
  offerHead: `INSERT INTO queue_heads (owner, host, state, seq) VALUES (?, ?, ?, ?)
    ON CONFLICT (owner, host, state) DO UPDATE SET seq = excluded.seq WHERE excluded.seq < seq`,
  dropHead: "DELETE FROM queue_heads WHERE owner = ? AND host = ? AND state = ?",
  nextHead: `INSERT INTO queue_heads (owner, host, state, seq)
    SELECT ifnull(owner, ''), host, state, seq FROM tasks
    WHERE claimable = 1 AND ifnull(owner, '') = ? AND host = ? AND state = ? ORDER BY seq LIMIT 1`,
  // Owners in the order of their turns, up to the first that has a head which may run now.
  nextInTurn: `SELECT ${taskRow} FROM tasks WHERE seq = (
    SELECT (
      SELECT seq FROM queue_heads WHERE queue_heads.owner = owners.owner
        AND host NOT IN (SELECT value FROM json_each(?))
        AND (state = 'running' OR running < ifnull(
          (SELECT document ->> '$.limits.max_running' FROM keys WHERE name = owners.owner), 9e18))
      ORDER BY seq LIMIT 1
    ) AS head
    FROM owners
    WHERE queued + running > 0 AND owner NOT IN (SELECT value FROM json_each(?)) AND head IS NOT NULL
    ORDER BY running, claimed, owner LIMIT 1)`,

  countOwner: `INSERT INTO owners (owner, queued, running, bytes, records, claimed) VALUES (?, ?, ?, ?, ?, 0)
    ON CONFLICT (owner) DO UPDATE SET queued = queued + excluded.queued, running = running + excluded.running,
      bytes = bytes + excluded.bytes, records = records + excluded.records`,
  useOfOwner: `SELECT queued, running, bytes, records, keys.document AS key FROM keys
    LEFT JOIN owners ON owner = name WHERE name = ?`,
  lastClaim: "SELECT max(claimed) AS claimed FROM owners",
  markClaim: "UPDATE owners SET claimed = ? WHERE owner = ?",

  storedBytes: "SELECT ifnull(sum(bytes), 0) AS bytes FROM owners",
  oldestFiles: `SELECT id, seq, bytes, finished_at AS finishedAt FROM tasks
    WHERE bytes > 0 AND (finished_at, seq) > (?, ?) ORDER BY finished_at, seq LIMIT ?`,

  recallKey: "SELECT fingerprint, answer AS document FROM idempotency_keys WHERE key = ? AND ends_at > ?",
  keepKey: `INSERT OR REPLACE INTO idempotency_keys (key, fingerprint, answer, ends_at)
    VALUES (?, ?, ?, ?)`,
  // A few at a time: deleting the keys of a whole day would block everything else.
  forgetKeys: `DELETE FROM idempotency_keys WHERE rowid IN
    (SELECT rowid FROM idempotency_keys WHERE ends_at <= ? ORDER BY ends_at LIMIT 16)`,

  addKey: "INSERT INTO keys (name, document) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
  allKeys: "SELECT document FROM keys",
  removeKey: "DELETE FROM keys WHERE name = ?",

  webhookOfKey: "SELECT name FROM keys WHERE name = ? AND document -> '$.webhook' IS NOT NULL",
  addLine: `INSERT INTO outbox_lines (endpoint, task, due_at) VALUES (?, ?, ?)
    ON CONFLICT (endpoint, task) DO NOTHING`,
  addMessage: `INSERT INTO outbox_messages (line, id, body, created_at)
    VALUES ((SELECT line FROM outbox_lines WHERE endpoint = ? AND task = ?), ?, ?, ?)`,
  nextEndpoint: "SELECT min(endpoint) AS endpoint FROM outbox_lines WHERE endpoint > ?",
  dueLines: `SELECT line, endpoint, task AS taskId, due_at AS dueAtMs, refusals FROM outbox_lines
    WHERE endpoint = ? AND due_at <= ? ORDER BY due_at LIMIT ?`,
  leaseLine: "UPDATE outbox_lines SET due_at = ?, lease = ? WHERE line = ?",
  leasedLine: "SELECT line FROM outbox_lines WHERE endpoint = ? AND task = ? AND lease = ?",
  releaseLine: "UPDATE outbox_lines SET due_at = ?, refusals = ?, lease = NULL WHERE line = ?",
  removeEmptyLine: `DELETE FROM outbox_lines
    WHERE line = ? AND NOT EXISTS (SELECT 1 FROM outbox_messages WHERE line = ?)`,
  firstMessage: `SELECT id, body, created_at AS createdAtMs FROM outbox_messages
    WHERE line = ? ORDER BY seq LIMIT 1`,
  removeFirstMessage: `DELETE FROM outbox_messages
    WHERE seq = (SELECT min(seq) FROM outbox_messages WHERE line = ?)`,
  excessMessages: `SELECT line, seq FROM (
      SELECT line, seq, lease, row_number() OVER newest AS place, sum(octet_length(body)) OVER newest AS bytes
      FROM outbox_lines JOIN outbox_messages USING (line) WHERE endpoint = ?
      WINDOW newest AS (ORDER BY seq DESC)
    ) WHERE (place > ? OR bytes > ?) AND lease IS NULL ORDER BY seq LIMIT ?`,
  removeMessage: "DELETE FROM outbox_messages WHERE seq = ?",
  countMessages: `SELECT count(*) AS messages,
    (SELECT created_at FROM outbox_messages ORDER BY seq LIMIT 1) AS createdAtMs FROM outbox_messages`,

  /** Writes the present value, which fails if nothing can be written. */
  probe: `PRAGMA user_version = ${migrations.length}`,
} as const;

export type Statements = Readonly<Record<keyof typeof statements, StatementSync>>;

/** Prepares all statements; rows of pages are arrays. */
export function prepareStatements(db: DatabaseSync): Statements {
  const prepared = Object.entries(statements).map(([name, sql]) => [name, db.prepare(sql)]);
  const all: Statements = Object.fromEntries(prepared);
  // The objects that node:sqlite makes take a third of the time of a page.
  const { page: first, pageOfState, pageOfOwner, pageOfOwnerAndState, pageOfParent } = all;
  for (const page of [first, pageOfState, pageOfOwner, pageOfOwnerAndState, pageOfParent]) {
    page.setReturnArrays(true);
  }
  return all;
}
