import { spawn, spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { accessKeyOf, newSecret } from "../../../src/keys/secrets.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { makeFolder } from "../../folder.ts";
import { kill } from "../../kill.ts";

const script = join(import.meta.dirname, "child.ts");

test("a file that another process has open is refused, until that process is killed", async () => {
  const path = join(makeFolder(), "tasks.db");
  const { child, lines } = start(process.execPath, [script, "hold", path]);
  expect((await lines.next()).value).toBe("open");
  expect(() => openSqliteStore({ path })).toThrow(
    `cannot open the task store ${path} (STORE_URL, DATA_DIR): another process has it open, ` +
      "and only one at a time may use a SQLite task store",
  );
  await kill(child);
  const store = openSqliteStore({ path });
  await store.ping();
  await store.close();
});

/** Root may write every file. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const canRun = spawnSync(process.execPath, ["-e", "0"], user).status === 0;

test.skipIf(!canRun)("a file that may only be read is refused, and the error says so", async () => {
  const folder = makeFolder();
  const path = join(folder, "tasks.db");
  await openSqliteStore({ path }).close();
  chmodSync(folder, 0o777);
  chmodSync(path, 0o444);
  const { stderr } = spawnSync(process.execPath, [script, "hold", path], {
    ...user,
    timeout: 300_000,
    encoding: "utf8",
  });
  expect(stderr).toMatch(`cannot open the task store ${path} (STORE_URL, DATA_DIR): EACCES: permission denied`);
});

test("no acknowledged task is lost when the process is killed while it writes", async () => {
  const path = join(makeFolder(), "tasks.db");
  const acknowledged: string[] = [];
  for (const enough of [50, 500, 1500]) {
    const { child, lines } = start(process.execPath, [script, "write", path]);
    let count = 0;
    for await (const line of lines) {
      acknowledged.push(line);
      count += 1;
      if (count === enough) child.kill("SIGKILL");
    }
    const store = openSqliteStore({ path });
    const found = await Promise.all(acknowledged.map((id) => store.get(id)));
    await store.close();
    expect(found.filter((task) => task === undefined)).toEqual([]);
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(2050);
});

test("tasks of a killed process are claimed, and count for the limits of their key", async () => {
  const path = join(makeFolder(), "tasks.db");
  const { child, lines } = start(process.execPath, [script, "queue", path]);
  expect((await lines.next()).value).toBe("open");
  await kill(child);
  const store = openSqliteStore({ path });
  onTestFinished(() => store.close());
  const anna = { name: "anna", admin: false, limits: { max_queued: 3 } };
  await store.keys.add(accessKeyOf(newSecret(), anna, new Date()));
  const create = () => store.create(newTask("https://video.example.com/", {}, new Date(), "anna"));
  await expect(create()).rejects.toMatchObject({ code: "quota_exceeded" });
  expect(await store.claim({ leaseMs: 60_000 })).toMatchObject({ task: { owner: "anna" } });
  expect(await create()).toMatchObject({ state: "queued" });
});

test.skipIf(process.platform === "win32")(
  "writes too large for the disk are refused with unavailable; smaller ones work",
  async () => {
    const path = join(makeFolder(), "tasks.db");
    const limited = `ulimit -f 1024 && exec "$0" "$@"`;
    const { lines } = start("sh", ["-c", limited, process.execPath, script, "overfill", path]);
    const printed: string[] = [];
    for await (const line of lines) printed.push(line);
    const refusal = expect.stringMatching(/^unavailable: the task store failed: /);
    expect(printed).toEqual([refusal, refusal, "stored", "1 task", "unavailable"]);
  },
);

function start(command: string, args: string[]) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => kill(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, lines };
}
