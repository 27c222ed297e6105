import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { endLeases, openDatabase } from "../../../src/stores/sqlite/database.ts";
import { statements } from "../../../src/stores/sqlite/statements.ts";
import { makeFolder } from "../../folder.ts";

/** Reads the owners in the order of their turns, up to the first that has a task which may run. */
const orderedWalk = "SCAN owners USING INDEX owners_by_turn";

/**
 * The keys and their owners are few, and are read together, as are collections that are ending; the last sequence number is the only row of its table; the last
 * claim is read once; the messages are counted for the metrics alone, every few seconds, and those beyond a limit are found once a minute.
 */
const whole = new Set([
  "allKeys",
  "storedBytes",
  "lastSeq",
  "keepLastSeq",
  "lastClaim",
  "countMessages",
  "excessMessages",
  "endingCollections",
]);
const others = Object.entries(statements).filter(([name]) => !whole.has(name));

test.each(others)("%s finds its rows through an index", (_name, sql) => {
  const details = explain(sql);
  const scans = details.filter((detail) => detail.startsWith("SCAN"));
  expect(scans.filter((scan) => !scan.startsWith("SCAN json_each"))).toEqual(
    sql === statements.nextInTurn ? [orderedWalk] : [],
  );
  expect(details.filter((detail) => detail.includes("TEMP B-TREE"))).toEqual([]);
});

const ofOwner = "SEARCH tasks USING INDEX tasks_by_owner_and_state (owner=? AND state=? AND listed=? AND seq<?)";

test.each([
  [statements.page, "SEARCH tasks USING INDEX tasks_listed (seq<?)"],
  [statements.pageOfState, "SEARCH tasks USING INDEX tasks_by_state (state=? AND listed=? AND seq<?)"],
  [statements.pageOfOwner, ofOwner],
  [statements.pageOfOwnerAndState, ofOwner],
  [statements.pageOfParent, "SEARCH members USING PRIMARY KEY (collection=? AND place>?)"],
  [statements.endedMembers, "SEARCH members USING PRIMARY KEY (collection=? AND place>?)"],
  [statements.placesOfTask, "SEARCH members USING COVERING INDEX members_by_task (task=?)"],
  [statements.reusableByVideo, "SEARCH tasks USING INDEX tasks_by_video (video=?)"],
  [statements.reusableByPage, "SEARCH tasks USING INDEX tasks_by_page_video (page_video=?)"],
  [statements.reusableBySite, "SEARCH tasks USING INDEX tasks_by_site_video (site_video=?)"],
  [statements.promoteDue, "SEARCH tasks USING COVERING INDEX tasks_waiting (due_at<?)"],
  [statements.countState, "SEARCH tasks USING COVERING INDEX tasks_by_state (state=?)"],
  [statements.queuedTasks, "SEARCH tasks USING INDEX tasks_by_state (state=? AND listed=?)"],
  [statements.oldestFiles, "SEARCH tasks USING INDEX tasks_with_files (finished_at>?)"],
  [endLeases, "SEARCH tasks USING INDEX tasks_by_state (state=?)"],
  [statements.nextHead, "SEARCH tasks USING INDEX tasks_claimable (<expr>=? AND host=? AND state=?)"],
  [statements.nextInTurn, "SEARCH queue_heads USING COVERING INDEX queue_heads_by_seq (owner=?)"],
  [statements.forgetKeys, "SEARCH idempotency_keys USING COVERING INDEX idempotency_keys_by_end (ends_at<?)"],
])("%s uses the index made for it", (sql, detail) => {
  expect(explain(sql)).toContain(detail);
});

function explain(sql: string): string[] {
  const db = openDatabase(join(makeFolder(), "tasks.db"));
  onTestFinished(() => db.close());
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return plan.map((step) => String(step["detail"]));
}
