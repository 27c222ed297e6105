import { statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createGroupCommit } from "../../../src/stores/sqlite/group-commit.ts";
import { createWalSync } from "../../../src/stores/sqlite/disk.ts";
import { times } from "../../contracts/task-store/harness.ts";
import { makeFolder } from "../../folder.ts";

const unavailable = { name: "ServiceError", code: "unavailable" };

// A transaction takes writes for a while only: here the time stands still, however busy the machine is.
beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("writes requested together run in that order and share one transaction", async () => {
  const { commits, insert, rows, walBytes } = start();
  await commits.run(() => insert(0));
  const oneBytes = walBytes();
  const results = times(10, (n) => commits.run(() => insert(n + 1)));
  expect(rows()).toEqual([0]);
  expect(await Promise.all(results)).toEqual(times(10, (n) => n + 1));
  expect(rows()).toEqual(times(11, (n) => n));
  expect(walBytes() - oneBytes).toBeLessThanOrEqual(oneBytes);
});

test("of many writes only so many are in one transaction: others of the process have their turn in between", async () => {
  const { commits, insert, rows } = start();
  const results = times(1_000, (n) => commits.run(() => insert(n)));
  const counts: number[] = [];
  while (rows().length < 1_000) {
    await setImmediate();
    counts.push(rows().length);
  }
  expect(new Set(counts).size).toBeGreaterThanOrEqual(10);
  expect(await Promise.all(results)).toEqual(times(1_000, (n) => n));
});

test("after 10 ms a transaction takes no further write: those of long records run one by one", async () => {
  const { commits, insert, rows } = start();
  const takeMs = (n: number, ms: number) =>
    commits.run(() => {
      vi.advanceTimersByTime(ms);
      return insert(n);
    });
  const results = [takeMs(0, 6), takeMs(1, 4), takeMs(2, 30), takeMs(3, 1)];
  const counts: number[] = [];
  while (rows().length < 4) {
    await setImmediate();
    counts.push(rows().length);
  }
  expect(new Set(counts)).toEqual(new Set([2, 3, 4]));
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3]);
});

test("owners take turns: a write does not wait until all earlier ones of another owner are done", async () => {
  const { commits, insert, rows } = start();
  const of = (owner: string | undefined, n: number) =>
    commits.run(() => {
      vi.advanceTimersByTime(4);
      return insert(n);
    }, owner);
  const order: number[] = [];
  const eve = times(9, (n) => of("eve", n));
  const others = [of("bob", 20), of("bob", 21), of(undefined, 30)];
  await Promise.all([...eve, ...others].map(async (write) => void order.push(await write)));
  expect(order.slice(0, 6)).toEqual([0, 20, 30, 1, 21, 2]);
  expect(order.filter((n) => n < 10)).toEqual(times(9, (n) => n));
  expect(rows()).toHaveLength(12);
});

test("an owner that adds writes all the time holds up nobody", async () => {
  const { commits, insert } = start();
  const order: string[] = [];
  let n = 0;
  const add = (owner: string): Promise<void> =>
    commits
      .run(() => {
        vi.advanceTimersByTime(30);
        order.push(owner);
        insert((n += 1));
      }, owner)
      .then(() => undefined);
  const first = times(3, () => add("eve"));
  const late = first.map((write) => write.then(() => add("eve")));
  await Promise.all([add("bob"), ...late]);
  expect(order).toEqual(["eve", "bob", ...times(5, () => "eve")]);
});

test("writes that were not reached when one fails run later, once", async () => {
  const { commits, insert, rows } = start();
  const outcomes = await Promise.allSettled(
    times(6, (n) =>
      commits.run(() => {
        vi.advanceTimersByTime(4);
        if (n === 1) throw new RangeError("second thoughts");
        return insert(n);
      }),
    ),
  );
  expect(rows()).toEqual([0, 2, 3, 4, 5]);
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, false, true, true, true, true]);
});

test("a write that throws is rolled back alone and completely", async () => {
  const { commits, insert, rows } = start();
  const outcomes = await Promise.allSettled([
    commits.run(() => insert(1)),
    commits.run(() => {
      insert(2);
      throw new RangeError("second thoughts");
    }),
    commits.run(() => insert(3)),
    commits.run(() => {
      insert(4);
      insert(1);
    }),
    commits.run(() => insert(5)),
  ]);
  expect(rows()).toEqual([1, 3, 5]);
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, false, true, false, true]);
  expect(outcomes[1]).toMatchObject({ reason: { name: "RangeError" } });
  expect(outcomes[3]).toMatchObject({
    reason: { ...unavailable, cause: { errstr: "constraint failed" } },
  });
});

test("a full disk rejects and rolls back the whole transaction; the next one works", async () => {
  const { db, commits, insert, rows } = start();
  await commits.run(() => insert(1));
  db.exec("PRAGMA max_page_count = 10");
  const outcomes = await Promise.allSettled([
    commits.run(() => insert(2)),
    commits.run(() => insert(3, "x".repeat(100_000))),
    commits.run(() => insert(4)),
  ]);
  const full = { errstr: "database or disk is full" };
  const rejected = { status: "rejected", reason: { ...unavailable, cause: full } };
  expect(outcomes).toMatchObject([rejected, rejected, rejected]);
  expect(rows()).toEqual([1]);
  expect(await commits.run(() => insert(5))).toBe(5);
  expect(rows()).toEqual([1, 5]);
});

test("a failed COMMIT rejects and rolls back the whole transaction; the next one works", async () => {
  const { db, commits, insert, rows } = start();
  db.exec(`CREATE TABLE guests (host INTEGER REFERENCES rows (n) DEFERRABLE INITIALLY DEFERRED)`);
  const outcomes = await Promise.allSettled([
    commits.run(() => insert(1)),
    commits.run(() => db.exec("INSERT INTO guests VALUES (99)")),
  ]);
  const cause = { message: "FOREIGN KEY constraint failed" };
  const rejected = { status: "rejected", reason: { ...unavailable, cause } };
  expect(outcomes).toMatchObject([rejected, rejected]);
  expect(rows()).toEqual([]);
  expect(db.isTransaction).toBe(false);
  expect(await commits.run(() => insert(2))).toBe(2);
});

test("state outside the database is reset when writes are rolled back", async () => {
  const { db, insert, rows } = start();
  let count = 0;
  const commits = createGroupCommit(db, async () => {}, {
    mark() {
      const before = count;
      return () => {
        count = before;
      };
    },
  });
  const add = (n: number, fault?: string) =>
    commits.run(() => {
      count += 1;
      insert(n);
      if (fault !== undefined) throw new RangeError(fault);
    });
  await Promise.allSettled([add(1), add(2, "second thoughts"), add(3)]);
  expect(rows()).toHaveLength(count);
  db.exec("PRAGMA max_page_count = 10");
  const large = commits.run(() => {
    count += 1;
    insert(4, "x".repeat(100_000));
  });
  await Promise.allSettled([large, add(5)]);
  expect([count, rows()]).toEqual([2, [1, 3]]);
});

test("a failed check rejects all writes of the transaction before they run; the next ones work", async () => {
  const { db, insert, rows } = start();
  let failures = 1;
  const check = () => {
    if (failures > 0) throw new RangeError("no file");
  };
  const commits = createGroupCommit(db, async () => {}, { check });
  const outcomes = await Promise.allSettled([commits.run(() => insert(1)), commits.run(() => insert(2))]);
  const rejected = { status: "rejected", reason: { message: "no file" } };
  expect(outcomes).toMatchObject([rejected, rejected]);
  failures = 0;
  expect(await commits.run(() => insert(3))).toBe(3);
  expect(rows()).toEqual([3]);
});

test("what completes a transaction is written with it, once for all its writes; if it fails, none is committed", async () => {
  const { db, insert, rows } = start();
  let failures = 0;
  let last = 100;
  const complete = () => {
    if (failures > 0) throw new RangeError("not complete");
    insert((last += 1));
  };
  const commits = createGroupCommit(db, async () => {}, { complete });
  await Promise.all([1, 2].map((n) => commits.run(() => insert(n))));
  expect(rows()).toEqual([1, 2, 101]);
  failures = 1;
  const outcomes = await Promise.allSettled([3, 4].map((n) => commits.run(() => insert(n))));
  const rejected = { status: "rejected", reason: { message: "not complete" } };
  expect(outcomes).toMatchObject([rejected, rejected]);
  expect(rows()).toEqual([1, 2, 101]);
});

test("finish runs what was accepted, at once and only once", async () => {
  const { commits, insert, rows } = start();
  const result = commits.run(() => insert(1));
  void commits.finish();
  expect(rows()).toEqual([1]);
  void commits.finish();
  expect(await result).toBe(1);
  expect(await commits.run(() => insert(2))).toBe(2);
});

test("writes that are committed during a sync share the next one", async () => {
  const { db, insert, rows } = start();
  const flushes: (() => void)[] = [];
  const flushLog = () => new Promise<void>((resolve) => void flushes.push(resolve));
  const commits = createGroupCommit(db, flushLog);
  const settled: number[] = [];
  const write = async (n: number) => {
    settled.push(await commits.run(() => insert(n)));
  };
  const first = write(1);
  await vi.waitUntil(() => flushes.length === 1, 60_000);
  const others = [write(2), write(3)];
  await vi.waitUntil(() => rows().length === 3, 60_000);
  expect([settled, flushes.length]).toEqual([[], 1]);
  flushes[0]?.();
  await first;
  await vi.waitUntil(() => flushes.length === 2, 60_000);
  expect(settled).toEqual([1]);
  flushes[1]?.();
  await Promise.all(others);
  expect([settled, flushes.length]).toEqual([[1, 2, 3], 2]);
});

test("a failed sync rejects what waits for it; the next one works", async () => {
  const { db, insert } = start();
  let flushes = 0;
  const commits = createGroupCommit(db, async () => {
    flushes += 1;
    if (flushes === 1) throw new RangeError("no disk");
  });
  await expect(commits.run(() => insert(1))).rejects.toThrow("no disk");
  expect(await commits.run(() => insert(2))).toBe(2);
});

test("after a failed sync the next one moves the log into the database", async () => {
  const { db, path, insert, walBytes } = start();
  const elsewhere = join(makeFolder(), "rows.db");
  const log = createWalSync(db, elsewhere);
  insert(1);
  await expect(log.flush()).rejects.toMatchObject({ ...unavailable, cause: { code: "ENOENT" } });
  expect(walBytes()).toBeGreaterThan(0);
  symlinkSync(`${path}-wal`, `${elsewhere}-wal`);
  await log.flush();
  await log.close();
  expect(walBytes()).toBe(0);
});

function start() {
  const path = join(makeFolder(), "rows.db");
  const db = new DatabaseSync(path);
  onTestFinished(() => db.close());
  const log = createWalSync(db, path);
  onTestFinished(() => log.close());
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE rows (n INTEGER PRIMARY KEY, filling TEXT)");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const statement = db.prepare("INSERT INTO rows VALUES (?, ?)");
  return {
    db,
    path,
    commits: createGroupCommit(db, log.flush),
    insert(n: number, filling = ""): number {
      statement.run(n, filling);
      return n;
    },
    rows: () =>
      db
        .prepare("SELECT n FROM rows ORDER BY n")
        .all()
        .map((row) => row["n"]),
    walBytes: () => statSync(`${path}-wal`).size,
  };
}
