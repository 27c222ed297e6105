import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { startOwnPostgres } from "../postgres/database.ts";
import { query } from "../stores/postgres/query.ts";
import { makeFolder } from "../folder.ts";

/** A database on a disk that can be made full. */
interface SmallDisk {
  url: string;
  /** Leaves less free space than one page. */
  fill(): Promise<void>;
  freeSpace(): Promise<void>;
}

/**
 * Mounts a disk of 32 MiB for the database alone. Without the right to mount, a trigger of the database
 * raises the error of a full disk for each new event.
 */
export async function openSmallDisk(): Promise<SmallDisk> {
  const folder = mountSmallDisk("32m");
  return folder === undefined ? openWithTrigger() : openOnMount(folder);
}

/** Mounts a disk of this size for one test; returns undefined without the right to mount. */
export function mountSmallDisk(size: string): string | undefined {
  const folder = makeFolder();
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]);
  if (status !== 0) return undefined;
  onTestFinished(() => void execFileSync("umount", [folder]));
  return folder;
}

async function openOnMount(folder: string): Promise<SmallDisk> {
  // Started after the mount is registered for cleanup, and so stopped before the unmount.
  const server = await startOwnPostgres();
  const nobody = 65_534;
  chownSync(folder, nobody, nobody);
  await query(server.url(), `CREATE TABLESPACE small LOCATION '${folder}'`);
  await query(server.url(), "CREATE DATABASE small TABLESPACE small");
  const ballast = join(folder, "ballast");
  return {
    url: server.url("small"),
    fill: async () => fillDisk(ballast),
    async freeSpace() {
      rmSync(ballast);
    },
  };
}

/** Appends to the file until there is no space for a page. */
export function fillDisk(file: string): void {
  for (let bytes = 1 << 20; bytes >= 1 << 12;) {
    try {
      writeFileSync(file, Buffer.alloc(bytes), { flag: "a" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      bytes /= 2;
    }
  }
}

async function openWithTrigger(): Promise<SmallDisk> {
  const server = await startOwnPostgres();
  const url = server.url();
  return {
    url,
    async fill() {
      await query(
        url,
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100';
         END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON unreel.task_events EXECUTE FUNCTION refuse();`,
      );
    },
    async freeSpace() {
      await query(url, "DROP FUNCTION refuse CASCADE");
    },
  };
}
