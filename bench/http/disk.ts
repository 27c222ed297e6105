import { closeSync, fdatasyncSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { format, median } from "../table.ts";

/** Returns the file system of `folder` and the time of a durable write there, the minimum of every POST. */
export function describeDisk(folder: string): string {
  const file = join(folder, "fdatasync");
  const fd = openSync(file, "w");
  const block = Buffer.alloc(4096);
  const times = Array.from({ length: 200 }, () => {
    writeSync(fd, block);
    const start = performance.now();
    fdatasyncSync(fd);
    return performance.now() - start;
  });
  closeSync(fd);
  rmSync(file);
  const { type } = statfsSync(folder);
  const name = fileSystems.get(type) ?? `file system 0x${type.toString(16)}`;
  return `${folder}: ${name}, fdatasync of 4 KiB p50 ${format(median(times))} ms`;
}

/** File system types of statfs(2). */
const fileSystems: ReadonlyMap<number, string> = new Map([
  [0xef53, "ext4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x01021994, "tmpfs (memory, not a disk)"],
  [0x794c7630, "overlayfs"],
]);
