import { resolve } from "node:path";
import { isSharedStore, readStoreConfig, type StoreConfig } from "../config/config.ts";
import {
  isHelpWanted,
  type KeyCommand,
  type KeyResult,
  parseKeyCommand,
  runKeyCommand,
  usage,
} from "../keys/commands.ts";
import { sendKeyCommand } from "../keys/key-socket.ts";
import { openStore } from "../stores/registry.ts";
import { messageOf } from "../model/errors.ts";
import { statSync } from "node:fs";
import { connectionConfig, createDatabase, describeDatabase } from "../stores/postgres/database.ts";
import { sqlitePath } from "../stores/sqlite/database.ts";

/**
 * Adds, lists and removes the keys of a service, whether or not it runs: `node src/cli/key.ts add NAME …`. It reads
 * the settings STORE_URL and DATA_DIR as the service does. Only keys, and what was done, go to standard output; which
 * store has them goes to standard error.
 */
const args = process.argv.slice(2);
const command = parse();
if (command !== undefined) {
  try {
    process.umask(0o077);
    show(command, await run(command, readStoreConfig()));
  } catch (error) {
    fail(error, 1);
  }
}

/** Returns undefined if there is nothing to run. */
function parse(): KeyCommand | undefined {
  try {
    if (!isHelpWanted(args)) return parseKeyCommand(args);
    process.stdout.write(`${usage}\n`);
    return undefined;
  } catch (error) {
    fail(error, 2);
    process.stderr.write(`${usage}\n`);
    return undefined;
  }
}

/** What a command returned. */
interface Outcome extends KeyResult {
  /** What messages call the store that it used. */
  store: string;
  /** Whether that was created for it. */
  isNew: boolean;
}

/** A service that runs has its file, or its memory, to itself; it takes the command on its socket. */
async function run(given: KeyCommand, config: StoreConfig): Promise<Outcome> {
  const folder = resolve(config.DATA_DIR);
  const service = `the service that runs on DATA_DIR ${folder}`;
  const result = isSharedStore(config)
    ? undefined
    : await withStore(service, () => sendKeyCommand(config.DATA_DIR, given));
  if (result !== undefined) return { ...result, store: service, isNew: false };
  if (config.STORE_URL.startsWith("memory:")) {
    throw new Error(`no service runs on DATA_DIR ${folder}; keys in memory exist only while one does`);
  }
  return runOnStore(given, config);
}

async function runOnStore(given: KeyCommand, config: StoreConfig): Promise<Outcome> {
  const { STORE_URL, DATA_DIR } = config;
  const missing = await findMissing(config);
  if (missing !== undefined && given.command !== "add") {
    const rule = "STORE_URL and DATA_DIR must have the values that the service uses";
    throw new Error(`cannot ${given.command} keys: ${missing}; ${rule}`);
  }
  const opened = await openStore(STORE_URL, { dataDir: DATA_DIR });
  try {
    const store = storeName(config);
    const result = await withStore(store, () => runKeyCommand(opened.keys, given));
    return { ...result, store, isNew: missing !== undefined };
  } finally {
    await opened.close();
  }
}

/** Adds to the message of an error whose keys `job` was about. */
async function withStore<T>(store: string, job: () => Promise<T>): Promise<T> {
  try {
    return await job();
  } catch (error) {
    throw new Error(`${messageOf(error)} (keys of ${store})`, { cause: error });
  }
}

function show(given: KeyCommand, outcome: Outcome): void {
  const { secret, webhook_secret, keys = [] } = outcome;
  note(noticeOf(given, outcome));
  if (outcome.isNew) {
    note("this store is new: its keys apply only to a service whose STORE_URL and DATA_DIR name it");
  }
  if (given.command === "remove") process.stdout.write(`removed ${given.name}\n`);
  if (secret !== undefined) {
    note("the key, which is shown only now:");
    process.stdout.write(`${secret}\n`);
  }
  if (webhook_secret !== undefined) {
    note("the secret that signs its webhook's messages, also shown only now:");
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

/** Returns the line that names the store. */
function noticeOf(given: KeyCommand, { store, keys = [] }: Outcome): string {
  if (given.command === "add") return `${given.name} was added to the keys of ${store}`;
  if (given.command === "remove") return `${given.name} was removed from the keys of ${store}`;
  if (keys.length > 0) return `the keys of ${store}:`;
  return `${store} has no keys: whoever reaches the service may use it`;
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

function fail(error: unknown, exitCode: number): void {
  note(`key: ${messageOf(error)}`);
  process.exitCode = exitCode;
}

/** Returns what messages call the store that the settings name, without the password of a database. */
function storeName(settings: StoreConfig): string {
  const file = fileOf(settings);
  return file === undefined ? databaseName(settings.STORE_URL) : `sqlite:${file}`;
}

/**
 * Returns what is missing if opening the store would create it; undefined if there is one, or if opening it fails
 * and says why.
 *
 * @throws Error if a folder on the way to its file may not be read, or a URL names no database.
 */
async function findMissing(settings: StoreConfig): Promise<string | undefined> {
  const { STORE_URL } = settings;
  const file = fileOf(settings);
  if (file !== undefined) {
    const isThere = statSync(file, { throwIfNoEntry: false }) !== undefined;
    return isThere ? undefined : `there is no file ${file}`;
  }
  if (!isSharedStore(settings) || !(await isEmpty(STORE_URL))) return undefined;
  return `${databaseName(STORE_URL)} has no tables of a service`;
}

function fileOf({ STORE_URL, DATA_DIR }: StoreConfig): string | undefined {
  const [, path] = /^sqlite:(?!\/\/)(.*)$/s.exec(STORE_URL) ?? [];
  return path === undefined ? undefined : resolve(sqlitePath(path, DATA_DIR));
}

function databaseName(url: string): string {
  return `the database ${describeDatabase(connectionConfig(url))}`;
}

/** Returns false if the database cannot be asked. */
async function isEmpty(url: string): Promise<boolean> {
  const database = createDatabase(connectionConfig(url), () => {});
  try {
    const statement = "SELECT to_regclass('unreel.tasks') IS NULL AS empty";
    const [row] = await database.query<{ empty: boolean }>(statement);
    return row?.empty === true;
  } catch {
    return false;
  } finally {
    await database.close();
  }
}
