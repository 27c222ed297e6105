import { flushCompileCache } from "node:module";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { Task } from "../../src/model/task.ts";
import { createRunner } from "../../src/runner/runner.ts";
import { openStore } from "../../src/stores/registry.ts";
import { createTestEngine } from "../runner/engine.ts";
import { createPlaylist, entriesUpTo } from "../runner/playlists.ts";

/** Runs tasks of a store whose playlist has this many entries. Prints each change of a collection: its state and counts. */
const [url = "", dataDir = "", count = ""] = process.argv.slice(2);

const store = await openStore(url, { dataDir });
const logger = { info() {}, warn: console.error, error: console.error };
const { resolver } = createPlaylist(entriesUpTo(Number(count)), { sliceSize: 20 });
const runner = createRunner({
  store,
  resolver,
  logger,
  engine: createTestEngine(),
  files: openDiskFiles({ folder: dataDir }),
  concurrency: 4,
  perHost: 9,
  maxAttempts: 5,
  backoffMs: 0,
  runTimeoutMs: 600_000,
  maxFileBytes: 1e9,
  minFreeBytes: 1,
  maxLiveS: 0,
  maxEntries: 10_000,
  retentionS: 0,
  maxStoredBytes: 0,
  pausedHosts: () => [],
  findSkips: async () => [],
});
// It is killed before it would do so itself.
flushCompileCache();
store.events.subscribe(({ json }) => {
  const { kind, state, counts } = JSON.parse(json) as Partial<Task>;
  if (kind === "collection") process.stdout.write(`${state} ${JSON.stringify(counts)}\n`);
});
runner.start();
