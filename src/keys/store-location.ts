import { statSync } from "node:fs";
import { resolve } from "node:path";
import { connectionConfig, createDatabase, describeDatabase } from "../stores/postgres/database.ts";
import { sqlitePath } from "../stores/sqlite/database.ts";

/** The settings that say where a service has its store. */
interface StoreSettings {
  STORE_URL: string;
  DATA_DIR: string;
}

/** Returns what messages call the store that the settings name, without the password of a database. */
export function storeName(settings: StoreSettings): string {
  const file = fileOf(settings);
  return file === undefined ? databaseName(settings.STORE_URL) : `sqlite:${file}`;
}

/**
 * Returns what is missing if opening the store would create it; undefined if there is one, or if opening it fails
 * and says why.
 *
 * @throws Error if a folder on the way to its file may not be read, or a URL names no database.
 */
export async function findMissing(settings: StoreSettings): Promise<string | undefined> {
  const { STORE_URL } = settings;
  const file = fileOf(settings);
  if (file !== undefined) {
    const isThere = statSync(file, { throwIfNoEntry: false }) !== undefined;
    return isThere ? undefined : `there is no file ${file}`;
  }
  if (!/^postgres(ql)?:/.test(STORE_URL) || !(await isEmpty(STORE_URL))) return undefined;
  return `${databaseName(STORE_URL)} has no tables of a service`;
}

function fileOf({ STORE_URL, DATA_DIR }: StoreSettings): string | undefined {
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
