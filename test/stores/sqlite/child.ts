import { ServiceError } from "../../../src/model/errors.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../../src/feed/task-changes.ts";

/**
 * A process with its own task store. `hold` prints a line once the store is open and waits; `write` stores
 * tasks from 8 concurrent callers and prints each id once it is acknowledged; `queue` stores three tasks of the owner
 * anna and waits; `overfill` runs with a limit of the file size, see the test.
 */
const [, , mode, path = ""] = process.argv;
const store = openSqliteStore({ path });

if (mode === "write") await Promise.all(Array.from({ length: 8 }, write));
else if (mode === "overfill") await overfill();
else if (mode === "queue") await queue();
else hold();

function hold(): void {
  print("open");
  setInterval(() => undefined, 60_000);
}

async function write(): Promise<never> {
  for (;;) {
    const { id } = await store.create(newTask("https://video.example.com/", {}, new Date()));
    print(id);
  }
}

async function queue(): Promise<void> {
  for (let count = 0; count < 3; count += 1)
    await store.create(newTask("https://video.example.com/", {}, new Date(), "anna"));
  hold();
}

async function overfill(): Promise<void> {
  const large = newTask(`https://video.example.com/${"x".repeat(8_000_000)}`, {}, new Date());
  const small = newTask("https://video.example.com/", {}, new Date());
  const outcomes = await Promise.allSettled([store.create(large), store.create(small)]);
  for (const outcome of outcomes) {
    print(outcome.status === "rejected" ? `${outcome.reason.code}: ${outcome.reason.message}` : "ok");
  }
  print((await store.create(small)).id === small.id ? "stored" : "another");
  const { tasks } = await store.list({ limit: 10 });
  print(`${tasks.length} task`);
  print(await pingUntilRefused());
  await store.close();
}

/** Each ping writes a page, so that the log reaches its limit in a few hundred. */
async function pingUntilRefused(): Promise<string> {
  for (let count = 0; count < 900; count += 1) {
    const refusal = await store.ping().catch((error: unknown) => error);
    if (refusal instanceof ServiceError) return refusal.code;
  }
  return "never refused";
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
