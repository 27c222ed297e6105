import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { layOutZip, type ZipEntry } from "../../src/http/archives/zip-layout.ts";
import { makeSharedFolder } from "../folder.ts";

const run = promisify(execFile);
const folder = makeSharedFolder();

const has = async (program: string): Promise<boolean> =>
  run(program, ["--version"]).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
const [hasUnzip, hasPython, hasBsdtar] = await Promise.all(["unzip", "python3", "bsdtar"].map(has));

const contentOf = (index: number) => Buffer.from(`content ${index}`.repeat(index % 50));

/** Writes an archive; leaves a hole for the content of what is larger than a megabyte. */
async function write(entries: readonly ZipEntry[]): Promise<string> {
  const path = join(folder, `${entries.length}.zip`);
  await using file = await open(path, "w");
  let at = 0;
  for (const part of layOutZip(entries)) {
    const isHole = part.length > 1e6;
    const bytes =
      part.kind === "content" ? contentOf(part.index) : await part.write(async (index) => crc32(contentOf(index)));
    if (!isHole) await file.write(bytes, 0, part.length, at);
    at += part.length;
  }
  return path;
}

const modifiedAt = new Date("2026-01-31T12:34:56Z");
const small = Array.from({ length: 1_000 }, (_, n) => ({
  name: `Füße ${n} 🎬.mp4`,
  size: contentOf(n).length,
  modifiedAt,
}));
const GiB = 1024 ** 3;
const large = [5 * GiB, 5, 4 * GiB - 1].map((size, n) => ({
  name: `${n}.mp4`,
  size: n === 1 ? contentOf(1).length : size,
  modifiedAt,
}));

describe("an archive of 1,000 files", () => {
  it.runIf(hasUnzip)("is whole for unzip", async () => {
    const { stdout } = await run("unzip", ["-t", "-q", await write(small)]);
    expect(stdout).toContain("No errors detected");
  });

  it.runIf(hasBsdtar)("is whole for bsdtar", async () => {
    const { stdout } = await run("bsdtar", ["-tf", await write(small)], { env: { ...process.env, LC_ALL: "C.UTF-8" } });
    expect(stdout.trim().split("\n")).toHaveLength(1_000);
  });

  it.runIf(hasPython)("is whole for Python, with names and dates", async () => {
    const script =
      "import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]); i = z.infolist()[7];" +
      "print(json.dumps([z.testzip(), len(z.infolist()), i.filename, i.date_time]))";
    const { stdout } = await run("python3", ["-c", script, await write(small)]);
    expect(JSON.parse(stdout)).toEqual([null, 1_000, "Füße 7 🎬.mp4", [2026, 1, 31, 12, 34, 56]]);
  });
});

describe("an archive of more than 4 GiB", () => {
  it.runIf(hasPython)("has the right sizes and places for Python", async () => {
    const script =
      "import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]);" +
      "print(json.dumps([[i.file_size for i in z.infolist()], z.read('1.mp4').decode(), z.open('2.mp4').read(3).hex()]))";
    const { stdout } = await run("python3", ["-c", script, await write(large)]);
    expect(JSON.parse(stdout)).toEqual([large.map(({ size }) => size), contentOf(1).toString(), "000000"]);
  });

  it.runIf(hasUnzip)("has the right sizes and places for unzip", async () => {
    const { stdout } = await run("unzip", ["-p", await write(large), "1.mp4"]);
    expect(stdout).toBe(contentOf(1).toString());
  });
});
