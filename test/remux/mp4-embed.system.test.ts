import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { embedInMp4 } from "../../src/remux/mp4/embed.ts";
import { readMedia } from "../media/read-media.ts";
import { additions, cuesOf, packetHashes, probeAll } from "./additions.ts";
import { audioInput, createMediaFolder, hasFfmpeg, videoInput, x264 } from "./ts-media.ts";

const media = createMediaFolder();
const both = [...videoInput(4), ...audioInput(4), ...x264, "-c:a", "aac"];
const { signal } = new AbortController();

const embed = async (name: string, given = additions, narrowBytes?: number): Promise<boolean> =>
  embedInMp4(media.path(name), media.path("made.mp4"), given, {
    durationS: 4,
    signal,
    ...(narrowBytes !== undefined && { narrowBytes }),
  });

/** Returns what ffmpeg finds wrong with the containers' tables. */
async function faultsOf(path: string): Promise<string> {
  const words = ["-v", "error", "-i", path, "-map", "0", "-c", "copy", "-f", "null", "-"];
  return (await readMedia("ffmpeg", ...words)).stderr;
}

describe.skipIf(!hasFfmpeg)("an MP4 as published to which something is added", () => {
  it.each([
    ["its index in front", ["-movflags", "+faststart"]],
    ["its index at the end", []],
    ["fragments", ["-movflags", "+frag_keyframe+empty_moov+default_base_moof"]],
    ["fragments that count from its start", ["-movflags", "+frag_keyframe+empty_moov"]],
    ["fragments with an index", ["-movflags", "+frag_keyframe+empty_moov+default_base_moof+global_sidx"]],
    ["tags of its own", ["-metadata", "title=Old", "-metadata", "lyrics=Kept", "-metadata", "artist=Old"]],
    ["two audio tracks", [...audioInput(4), "-map", "0:v", "-map", "1:a", "-map", "2:a"]],
  ])("keeps tracks and media, whatever it has: %s", async (_, args) => {
    const inputs = args.includes("-map")
      ? [...videoInput(4), ...audioInput(4), ...args, ...x264, "-c:a", "aac"]
      : [...both, ...args];
    media.make("source.mp4", ...inputs);
    expect(await embed("source.mp4")).toBe(true);
    const made = media.path("made.mp4");
    const { format, chapters, streams } = probeAll(made);
    expect(format.tags).toMatchObject({ title: additions.tags.title, artist: "Jemand" });
    if (args.includes("lyrics=Kept")) expect(format.tags["lyrics"]).toBe("Kept");
    expect(chapters.map(({ tags }) => tags.title)).toEqual(["Anfang", "Ende – 終"]);
    expect(streams.filter(({ codec_name }) => codec_name === "mov_text")).toHaveLength(2);
    expect(cuesOf(made, 0)).toContain("dritte\nin zwei Zeilen");
    const own = new Set(packetHashes(made));
    expect(packetHashes(media.path("source.mp4")).filter((hash) => !own.has(hash))).toEqual([]);
    expect(await faultsOf(made)).toBe("");
  });

  it.each([
    ["in front", ["-movflags", "+faststart"]],
    ["at the end", []],
  ])("has offsets of 64 bits if it is long: index %s", async (_, args) => {
    media.make("source.mp4", ...both, ...args);
    expect(await embed("source.mp4", additions, 1_000)).toBe(true);
    const made = media.path("made.mp4");
    const bytes = readFileSync(made);
    expect([bytes.includes("stco"), bytes.includes("co64")]).toEqual([false, true]);
    expect(cuesOf(made, 0)).toContain("dritte\nin zwei Zeilen");
    const own = new Set(packetHashes(made));
    expect(packetHashes(media.path("source.mp4")).filter((hash) => !own.has(hash))).toEqual([]);
    expect(await faultsOf(made)).toBe("");
  });

  it("has an index of its fragments that leads to them", async () => {
    media.make("source.mp4", ...both, "-movflags", "+frag_keyframe+empty_moov+default_base_moof");
    expect(await embed("source.mp4")).toBe(true);
    const bytes = readFileSync(media.path("made.mp4"));
    // After the version, the track, the lengths of numbers and their count; an entry begins with a time.
    const entry = bytes.indexOf("tfra") + 20;
    const position = Number(bytes.readBigUInt64BE(entry + 8));
    expect(bytes.toString("latin1", position + 4, position + 8)).toBe("moof");
  });

  it("twice has what was added last", async () => {
    media.make("source.mp4", ...both);
    await embed("source.mp4");
    writeFileSync(media.path("again.mp4"), readFileSync(media.path("made.mp4")));
    const tags = { ...noAdditions.tags, title: "New" };
    expect(await embed("again.mp4", { ...noAdditions, tags })).toBe(true);
    const { format, chapters } = probeAll(media.path("made.mp4"));
    expect(format.tags).toMatchObject({ title: "New", artist: "Jemand" });
    expect(chapters).toHaveLength(2);
  });

  it("keeps the chapters that it lists itself, in whatever form, if none are added", async () => {
    media.make("source.mp4", ...both);
    await embed("source.mp4", { ...additions, subtitles: [] });
    // The list of Nero alone.
    const bytes = readFileSync(media.path("made.mp4"));
    bytes.write("free", bytes.indexOf("tref"), "latin1");
    writeFileSync(media.path("nero.mp4"), bytes);
    const titles = () => probeAll(media.path("made.mp4")).chapters.map(({ tags }) => tags.title);
    await embed("nero.mp4", { ...noAdditions, tags: { ...noAdditions.tags, title: "New" } });
    expect(titles()).toEqual(["Anfang", "Ende – 終"]);
    await embed("nero.mp4", { ...noAdditions, chapters: [{ startS: 0, endS: 4, title: "Only" }] });
    expect(titles()).toEqual(["Only"]);
  });

  it.each([1, 2 ** 32 - 1])("has tracks of different ids, also if %d is said to be the next one", async (next) => {
    media.make("source.mp4", ...both);
    const bytes = readFileSync(media.path("source.mp4"));
    const header = bytes.indexOf("mvhd") - 4;
    bytes.writeUInt32BE(next, header + bytes.readUInt32BE(header) - 4);
    writeFileSync(media.path("next.mp4"), bytes);
    await embed("next.mp4");
    const made = readFileSync(media.path("made.mp4"));
    const ids = [...made.toString("latin1").matchAll(/tkhd/g)].map(({ index }) => made.readUInt32BE(index + 16));
    expect(new Set(ids)).toEqual(new Set([1, 2, 3, 4, 5]));
  });

  it("has the chapters that are added instead of those of a track of its own", async () => {
    media.make("source.mp4", ...both);
    await embed("source.mp4", { ...additions, subtitles: [] });
    writeFileSync(media.path("chapters.mp4"), readFileSync(media.path("made.mp4")));
    await embed("chapters.mp4", { ...noAdditions, chapters: [{ startS: 1, endS: 4, title: "Only" }] });
    const made = media.path("made.mp4");
    const { chapters, streams } = probeAll(made);
    expect(chapters.map(({ start_time, tags }) => [+start_time, tags.title])).toEqual([[1, "Only"]]);
    // Of the media, and of the chapters.
    expect(streams.map(({ codec_type }) => codec_type)).toEqual(["video", "audio", "data", "video"]);
    expect(packetHashes(made)).toEqual(expect.arrayContaining(packetHashes(media.path("source.mp4"))));
    expect(await faultsOf(made)).toBe("");
  });

  it("keeps its own chapters if they have pictures, or it is fragmented, whatever is added", async () => {
    media.make("source.mp4", ...both);
    await embed("source.mp4", { ...additions, subtitles: [] });
    const bytes = readFileSync(media.path("made.mp4"));
    bytes.write("vide", bytes.lastIndexOf(`hdlr${"\0".repeat(8)}text`) + 12, "latin1");
    writeFileSync(media.path("pictures.mp4"), bytes);
    const added = { ...noAdditions, chapters: [{ startS: 1, endS: 4, title: "Only" }] };
    await embed("pictures.mp4", added);
    expect(readFileSync(media.path("made.mp4")).includes("Only")).toBe(false);
    const fragments = ["-movflags", "+frag_keyframe+empty_moov+default_base_moof"];
    media.make("source.mp4", ...both, ...fragments);
    await embed("source.mp4", { ...additions, subtitles: [] });
    writeFileSync(media.path("fragments.mp4"), readFileSync(media.path("made.mp4")));
    await embed("fragments.mp4", added);
    const titles = probeAll(media.path("made.mp4")).chapters.map(({ tags }) => tags.title);
    expect(titles).toEqual(["Anfang", "Ende – 終"]);
  });

  it("is left alone if items of it are at positions of the file", async () => {
    media.make("source.mp4", ...both);
    const items = Buffer.concat([
      Buffer.from([0, 0, 0, 20]),
      Buffer.from("meta\0\0\0\0"),
      Buffer.from([0, 0, 0, 8]),
      Buffer.from("iloc"),
    ]);
    writeFileSync(media.path("items.mp4"), Buffer.concat([readFileSync(media.path("source.mp4")), items]));
    expect(await embed("items.mp4")).toBe(false);
    media.make("title.mp4", ...both, "-metadata", "title=iloc, saio and kilocalories");
    expect(await embed("title.mp4")).toBe(true);
  });

  it("is left alone if it is damaged, or no MP4", async () => {
    const bytes = media.make("source.mp4", ...both);
    const at = bytes.indexOf("stco");
    for (const [from, to] of [
      [at + 8, at + 12],
      [bytes.indexOf("mvhd") - 4, bytes.indexOf("mvhd")],
    ] as const) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0xff, from, to);
      writeFileSync(media.path("damaged.mp4"), damaged);
      expect(await embed("damaged.mp4")).toBe(false);
    }
    writeFileSync(media.path("none.mp4"), Buffer.alloc(100));
    expect(await embed("none.mp4")).toBe(false);
  });
});
