import { join } from "node:path";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore, openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { openStore } from "../../src/stores/registry.ts";
import { median, type Target } from "../table.ts";
import type { BenchPostgres } from "../postgres.ts";
import { fillStore, keyOwner } from "./fill.ts";
import { fillPostgres } from "./postgres.ts";
import { type Effort, type Entry, find, ratio, runRounds, type Series } from "./rounds.ts";

export interface KeyBench {
  folder: string;
  postgres: BenchPostgres;
  effort: Effort;
  print: (title: string, series: readonly Series[]) => void;
}

const key = newSecret();
const connections = [64];

/** What a key costs, and what the tasks of others cost an owner who lists the only one of its own. */
export async function measureKeys({ folder, postgres, effort, print }: KeyBench): Promise<Target[]> {
  const file = (name: string) => `sqlite:${join(folder, `keys-${name}.db`)}`;
  const created = await runRounds("create", pair(file), effort);
  print("POST /tasks/, sqlite", created);
  for (const name of ["open", "key"]) await fill(join(folder, `keys-list-${name}.db`), 1_000);
  const listed = await runRounds(
    "list",
    pair((name) => file(`list-${name}`)),
    effort,
  );
  print("GET /tasks/ (50 tasks a page), sqlite", listed);
  const entries: Entry[] = [];
  for (const [size, tasks] of Object.entries({ "1k": 1e3, "1M": 1e6 })) {
    const stores = {
      sqlite: file(size),
      postgres: await postgres.open(),
    };
    await fill(join(folder, `keys-${size}.db`), tasks - 1, "others");
    await fillPostgres(stores.postgres, tasks - 1, "others");
    for (const [name, storeUrl] of Object.entries(stores)) {
      const store = await openStore(storeUrl, { dataDir: "" });
      await fillStore(store, 1, keyOwner);
      await store.close();
      const spec = { kind: "unreel", storeUrl, key } as const;
      entries.push({ name: `${name} ${size}`, spec, connections: [64, 4] });
    }
  }
  const owned = await runRounds("list", entries, effort);
  print("GET /tasks/ of an owner with one task", owned);
  const perSecond = (round: { perSecond: number }) => round.perSecond;
  return [
    ...[created, listed].map((series, index) => ({
      name: `${index === 0 ? "POST" : "GET"} with a key : without`,
      value: ratio(find(series, "key"), find(series, "open"), perSecond),
      unit: "×",
      atLeast: 0.9,
    })),
    await measureGuesses(),
    ...["sqlite", "postgres"].flatMap((name) =>
      [64, 4].map((count) => ({
        name: `GET p99 of an owner with 1 task, of 1M : 1k, ${name}, ${count} connections`,
        value: ratio(find(owned, `${name} 1M`, count), find(owned, `${name} 1k`, count), ({ p99Ms }) => p99Ms),
        unit: "×",
        atMost: 1.3,
      })),
    ),
  ];
}

const samples = 10_000;

/** Compares the times of looking for a key that is wrong in its last character, and for one that is all wrong. */
async function measureGuesses(): Promise<Target> {
  const store = createMemoryStore();
  await store.keys.add(accessKeyOf(key, { name: keyOwner, admin: false, limits: {} }, new Date()));
  const ring = await openKeyRing({ keys: store.keys });
  const guesses = [`${key.slice(0, -1)}!`, newSecret()];
  const times: number[][] = [[], []];
  for (let sample = 0; sample < samples + 1_000; sample += 1) {
    for (const [index, guess] of guesses.entries()) {
      const startNs = process.hrtime.bigint();
      ring.find(guess);
      // The first ones warm the code up.
      if (sample >= 1_000) times[index]?.push(Number(process.hrtime.bigint() - startNs));
    }
  }
  ring.close();
  const [almost = Number.NaN, wrong = Number.NaN] = times.map(median);
  return {
    name: `time to refuse a key wrong in one character : in all, p50 of ${samples}`,
    value: almost / wrong,
    unit: "×",
    atMost: 1.05,
  };
}

/** The same service without keys, and with one that requests need. */
function pair(urlOf: (name: string) => string): Entry[] {
  return [
    { name: "open", spec: { kind: "unreel", storeUrl: urlOf("open") }, connections },
    { name: "key", spec: { kind: "unreel", storeUrl: urlOf("key"), key }, connections },
  ];
}

async function fill(path: string, tasks: number, owner = keyOwner): Promise<void> {
  const store = openSqliteStore({ path, maxQueued: Number.POSITIVE_INFINITY });
  await fillStore(store, tasks, owner);
  await store.close();
}
