import { readConfig } from "./config.ts";
import { parseKeyCommand, usage } from "./keys/arguments.ts";
import { type KeyCommand, type KeyResult, runKeyCommand } from "./keys/commands.ts";
import { sendKeyCommand } from "./keys/key-socket.ts";
import type { Config } from "./settings.ts";
import { openStore } from "./stores/registry.ts";

/**
 * Adds, lists and removes the keys of a service, whether or not it runs: `node src/key.ts add NAME …`. It reads
 * the settings STORE_URL and DATA_DIR as the service does.
 */
const command = parse();
if (command !== undefined) {
  try {
    process.umask(0o077);
    show(command, await run(command, readConfig()));
  } catch (error) {
    fail(error, 1);
  }
}

function parse(): KeyCommand | undefined {
  try {
    return parseKeyCommand(process.argv.slice(2));
  } catch (error) {
    fail(error, 2);
    process.stderr.write(`${usage}\n`);
    return undefined;
  }
}

/** A service that runs has its file, or its memory, to itself; it takes the command on its socket. */
async function run(given: KeyCommand, { STORE_URL, DATA_DIR, HEARTBEAT_S }: Config) {
  const result = await sendKeyCommand(DATA_DIR, given);
  if (result !== undefined) return result;
  if (STORE_URL.startsWith("memory:")) {
    throw new Error(`no service with keys in memory runs on DATA_DIR ${DATA_DIR}`);
  }
  const store = await openStore(STORE_URL, { dataDir: DATA_DIR, heartbeatS: HEARTBEAT_S });
  try {
    return await runKeyCommand(store.keys, given);
  } finally {
    await store.close();
  }
}

function show(given: KeyCommand, { secret, webhook_secret, keys = [] }: KeyResult): void {
  if (given.command === "remove") process.stdout.write(`removed ${given.name}\n`);
  if (secret !== undefined) {
    process.stderr.write("the key, which is shown only now:\n");
    process.stdout.write(`${secret}\n`);
  }
  if (webhook_secret !== undefined) {
    process.stderr.write("the secret that signs its webhook's messages, also shown only now:\n");
    process.stdout.write(`${webhook_secret}\n`);
  }
  for (const { name, admin, limits, created_at, webhook } of keys) {
    const shown = Object.entries({ ...limits, ...(webhook && { webhook }) }).map(
      ([field, value]) => `${field}=${value}`,
    );
    const columns = [name.padEnd(20), admin ? "admin" : "-".padEnd(5), created_at, ...shown];
    process.stdout.write(`${columns.join("  ")}\n`);
  }
}

function fail(error: unknown, exitCode: number): void {
  process.stderr.write(`key: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = exitCode;
}
