import { closeSync, openSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { Additions } from "../../src/remux/additions.ts";
import { selectAll } from "../../src/remux/matroska/copy.ts";
import { framesIn } from "../../src/remux/matroska/lacing.ts";
import { writeOggOpus } from "../../src/remux/ogg/opus.ts";
import { additions, mutagen, probeAll } from "./additions.ts";
import { audioInput, createMediaFolder, hasFfmpeg, run } from "./ts-media.ts";

const media = createMediaFolder();
afterAll(media.remove);

function convert(name: string, given: Additions = additions): string {
  const path = media.path("made.opus");
  const [from, fd] = [openSync(media.path(name), "r"), openSync(path, "w")];
  try {
    for (const _ of writeOggOpus(selectAll(from)!, fd, given));
  } finally {
    closeSync(from);
    closeSync(fd);
  }
  return path;
}

/** The hashes of all packets in their order. */
function packets(path: string): string[] {
  const json = run(
    "ffprobe",
    "-v",
    "error",
    "-select_streams",
    "a",
    "-show_packets",
    "-show_data_hash",
    "md5",
    "-of",
    "json",
    path,
  );
  return (JSON.parse(json) as { packets: { data_hash: string }[] }).packets.map(({ data_hash }) => data_hash);
}

const heard = (path: string) => run("ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-f", "md5", "-");

describe.skipIf(!hasFfmpeg)("Opus in its own container", () => {
  it.each([
    ["WebM", "webm", ["-t", "2.3456"]],
    ["Matroska", "mkv", ["-frame_duration", "60"]],
    ["several channels", "mkv", ["-ac", "6"]],
    ["short packets", "webm", ["-frame_duration", "2.5"]],
    ["long packets", "webm", ["-b:a", "256k", "-vbr", "off", "-frame_duration", "60"]],
  ])("has the packets of its source, and what is heard is the same: %s", (_, ext, args) => {
    media.make(`source.${ext}`, ...audioInput(4, 48_000), "-c:a", "libopus", ...args);
    const path = convert(`source.${ext}`);
    expect(packets(path)).toEqual(packets(media.path(`source.${ext}`)));
    // ffmpeg trims the end of Ogg by its last page, that of Matroska by DiscardPadding.
    expect(heard(path)).toBe(heard(media.path(`source.${ext}`)));
  });

  it("has tags, chapters and a cover", () => {
    media.make("source.webm", ...audioInput(4, 48_000), "-c:a", "libopus");
    const path = convert("source.webm");
    const { streams, chapters } = probeAll(path);
    expect(streams[0]?.tags).toMatchObject({ TITLE: additions.tags.title, ARTIST: "Jemand", DATE: "2024-05-01" });
    expect(chapters.map(({ start_time, tags }) => [+start_time, tags.title])).toEqual([
      [0, "Anfang"],
      [1.5, "Ende – 終"],
    ]);
    expect(streams.filter(({ disposition }) => disposition["attached_pic"] === 1)).toHaveLength(1);
    const read = mutagen(path);
    if (read !== undefined) expect(read).toContain("'title': ['Ein Film & «mehr» 🎬']");
  });
});

describe("the frames of a lace", () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);
  const frames = (payload: Uint8Array, flags: number) => framesIn(payload, flags).map((frame) => [...frame]);

  it.each([
    ["no lace", 0, bytes(1, 2), [[1, 2]]],
    ["Xiph", 0x02, bytes(1, 2, 7, 8, 9), [[7, 8], [9]]],
    ["fixed sizes", 0x04, bytes(1, 7, 8), [[7], [8]]],
    ["EBML, with differences", 0x06, bytes(2, 0x82, 0xbe, 1, 2, 3, 4, 5), [[1, 2], [3], [4, 5]]],
  ])("are read: %s", (_, flags, payload, expected) => {
    expect(frames(payload, flags)).toEqual(expected);
  });

  it.each([
    ["a size beyond the end", 0x02, bytes(1, 9, 7)],
    ["no sizes", 0x02, bytes(9)],
    ["sizes that do not divide", 0x04, bytes(1, 7, 8, 9)],
    ["a size below 0", 0x06, bytes(2, 0x81, 0x80, 1)],
  ])("are refused if their sizes do not fit: %s", (_, flags, payload) => {
    expect(() => framesIn(payload, flags)).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
  });
});
