import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { findKept, keep, keptFolder, keyOf } from "./kept.ts";
import { keyOfFile } from "./read-media.ts";

// Any program that is installed.
const program = process.execPath;
const folder = makeSharedFolder();

function write(name: string, bytes: string): string {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
}

describe("a run of a program is known by", () => {
  it("its options and the bytes of the files that it reads, not their names", () => {
    const [one, same, other] = [write("1.ts", "a"), write("2.ts", "a"), write("3.ts", "b")];
    const key = keyOf(program, ["-i", one, "-f", "md5", "-"]);
    expect(key).toBeDefined();
    expect(keyOf(program, ["-i", same, "-f", "md5", "-"])).toBe(key);
    expect(keyOf(program, ["-i", other, "-f", "md5", "-"])).not.toBe(key);
    expect(keyOf(program, ["-i", one, "-f", "null", "-"])).not.toBe(key);
    expect(keyOf("no-such-program", ["-i", one])).toBeUndefined();
  });

  it("the files of the folder in which it runs, if that is its own", () => {
    const keys = ["a", "b"].map((bytes) => {
      return keyOf(program, ["-i", "in.mp4", "out.mp4"], new Map([["in.mp4", { body: Buffer.from(bytes) }]]));
    });
    expect(keys).not.toContain(undefined);
    expect(new Set(keys).size).toBe(2);
  });

  it("what filters make, also if there are fractions in it", () => {
    const sine = [
      "-f",
      "lavfi",
      "-t",
      "2",
      "-i",
      "aevalsrc=0.4*sin(2*PI*t/25):d=3",
      "-r",
      "30000/1001",
      "-f",
      "md5",
      "-",
    ];
    expect(keyOf(program, sine)).toBeDefined();
  });
});

describe("a run of a program is not known that reads", () => {
  const file = write("film.ts", "a film");
  mkdirSync(join(folder, "inner"));
  it.each<[string, string[]]>([
    ["a file of the working folder", ["-i", "package.json"]],
    ["one without an option", ["package.json"]],
    ["a file that is not there", ["-i", join(folder, "none.ts")]],
    ["a folder", [join(folder, "inner")]],
    ["a URL", ["http://127.0.0.1:8000/film.ts"]],
    ["a file by its protocol", [`file:${file}`]],
    ["several files by a protocol", [`concat:${file}|${file}`]],
    ["a sequence of files", [`${folder}/%d.png`]],
    ["a sequence by its protocol", [`file:${folder}/%d.png`]],
    ["a pipe", ["-i", "-"]],
    ["a pipe beside what a filter makes", ["-f", "lavfi", "-i", "sine", "-i", "pipe:0"]],
    ["a file in a filter", ["-f", "lavfi", "-i", `movie=${file},scale=2:2`]],
    ["a file in a filter of a video", ["-i", file, "-vf", `subtitles='${file}'`]],
    ["a playlist", ["-i", write("list", "#EXTM3U\n#EXTINF:1,\nfilm.ts\n")]],
    ["an MPD", ["-i", write("film.mpd", "<?xml version='1.0'?><MPD/>")]],
    ["a list of ffmpeg", ["-f", "concat", "-i", write("list.txt", "file 'film.ts'\n")]],
    ["a list with a comment", ["-f", "concat", "-i", write("list2.txt", "# films\nfile 'film.ts'\n")]],
  ])("%s", (_, args) => {
    expect(keyOf(program, args)).toBeUndefined();
  });
});

it("a file is not kept that others are made with", () => {
  const inputs = ["-f", "lavfi", "-i", "sine"];
  expect(keyOfFile([...inputs, join(folder, "1.mp4")], join(folder, "2.mp4"))).toBeUndefined();
  expect(keyOfFile(inputs, join(folder, "index.m3u8"))).toBeUndefined();
  expect(keyOfFile(inputs, join(folder, "%d.png"))).toBeUndefined();
});

describe("what is kept", () => {
  const key = (name: string) => createHash("sha256").update(`${name} ${folder}`).digest("hex");
  const place = (name: string) => join(keptFolder, key(name));

  it("is found again, also if it is empty", () => {
    keep(key("film"), "a film");
    keep(key("nothing"), "");
    expect(findKept(key("film"))?.toString()).toBe("a film");
    expect(findKept(key("nothing"))).toHaveLength(0);
    expect(findKept(key("none"))).toBeUndefined();
  });

  it.each<[string, (kept: Buffer) => Buffer]>([
    ["empty", () => Buffer.alloc(0)],
    ["cut", (kept) => kept.subarray(0, -1)],
    ["cut within its digest", (kept) => kept.subarray(0, 20)],
    ["changed", (kept) => Buffer.concat([kept.subarray(0, -1), Buffer.from("x")])],
  ])("is not found if its file is %s", (name, damage) => {
    keep(key(name), "a film");
    writeFileSync(place(name), damage(readFileSync(place(name))));
    expect(findKept(key(name))).toBeUndefined();
    keep(key(name), "a film");
    expect(findKept(key(name))?.toString()).toBe("a film");
  });
});
