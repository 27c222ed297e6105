import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { isWholeFile } from "../../src/engines/native/inspect/whole-file.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { resource } from "../media/resources.ts";
import { audioInput, createMediaFolder, hasFfmpeg, videoInput, x264 } from "../remux/ts-media.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
const media = createMediaFolder();
afterAll(() => engine.close());

const both = [...videoInput(2), ...audioInput(2), ...x264, "-c:a", "aac"];
const stating: readonly (readonly [string, readonly string[]])[] = [
  ["a.flac", audioInput(6)],
  ["mono.flac", [...audioInput(3), "-ac", "1", "-frame_size", "1000"]],
  ["a.mp3", [...audioInput(6), "-c:a", "libmp3lame", "-metadata", "title=A"]],
  ["a.wav", audioInput(2)],
  ["a.aiff", audioInput(2)],
  ["a.au", audioInput(2)],
  ["a.caf", audioInput(2)],
  ["packets.caf", [...audioInput(2), "-c:a", "alac"]],
  ["a.w64", audioInput(2)],
  ["vorbis.ogg", [...audioInput(6), "-c:a", "libvorbis", "-ac", "2"]],
  ["opus.ogg", [...audioInput(6), "-c:a", "libopus"]],
  ["streams.ogg", [...audioInput(2), ...audioInput(6), "-map", "0", "-map", "1", "-c:a", "libvorbis", "-ac", "2"]],
  ["a.mp4", both],
  ["index-first.mp4", [...both, "-movflags", "+faststart"]],
  ["fragments.mp4", [...both, "-movflags", "+frag_keyframe+empty_moov"]],
  ["a.mkv", both],
];
const silent: readonly (readonly [string, readonly string[]])[] = [
  ["a.ts", both],
  ["a.aac", [...audioInput(2), "-c:a", "aac"]],
  ["plain.mp3", [...audioInput(2), "-c:a", "libmp3lame", "-write_xing", "0"]],
  ["live.mkv", [...both, "-live", "1"]],
  ["indexed.mp4", [...both, "-g", "10", "-movflags", "+frag_keyframe+dash+global_sidx+skip_trailer"]],
];

const made = new Map<string, Buffer>();
/** Returns one of these files, which is made only once. */
function bytesOf(name: string): Buffer {
  const args = [...stating, ...silent].find(([known]) => known === name)![1];
  const bytes = made.get(name) ?? media.make(name, ...args);
  made.set(name, bytes);
  return bytes;
}

const id3v1 = Buffer.concat([Buffer.from("TAG"), Buffer.alloc(125)]);
/** A tag of one item, with a footer and no header. */
const ape = Buffer.concat([Buffer.from("\x03\0\0\0\0\0\0\0Title\0abcAPETAGEX"), Buffer.alloc(24)]);
ape.writeUInt32LE(2000, ape.length - 24);
ape.writeUInt32LE(ape.length, ape.length - 20);
const withTag = (bytes: Buffer, ...tags: readonly Buffer[]) => Buffer.concat([bytes, ...tags]);
/** The size of the `data` chunk, which comes last. */
function withSize(wave: Buffer, size: number): Buffer {
  const changed = Buffer.from(wave);
  changed.writeUInt32LE(size, changed.indexOf("data") + 4);
  return changed;
}
/** STREAMINFO says that the number of samples is not known. */
function withoutTotal(flac: Buffer): Buffer {
  const changed = Buffer.from(flac);
  changed.writeUInt32BE(0, 22);
  return changed;
}
const right: readonly (readonly [string, string, (bytes: Buffer) => Buffer])[] = [
  ["FLAC with ID3v1", "a.flac", (bytes) => withTag(bytes, id3v1)],
  ["FLAC with APE and ID3v1", "a.flac", (bytes) => withTag(bytes, ape, id3v1)],
  ["FLAC of an unknown length", "a.flac", withoutTotal],
  ["MP3 with ID3v1", "a.mp3", (bytes) => withTag(bytes, id3v1)],
  ["MP3 with APE and ID3v1", "a.mp3", (bytes) => withTag(bytes, ape, id3v1)],
  ["MP3 that states nothing, with APE", "plain.mp3", (bytes) => withTag(bytes, ape)],
  ["MP3 with other bytes at its end", "plain.mp3", (bytes) => withTag(bytes, Buffer.alloc(500))],
  ["AAC with ID3v1", "a.aac", (bytes) => withTag(bytes, id3v1)],
  ["Ogg with ID3v1", "vorbis.ogg", (bytes) => withTag(bytes, id3v1)],
  ["WAVE of length 0", "a.wav", (bytes) => withSize(bytes, 0)],
  ["WAVE of 2 GiB as sox writes it", "a.wav", (bytes) => withSize(bytes, 0x7fff_f000)],
  ["WAVE of 4 GiB", "a.wav", (bytes) => withSize(bytes, 0xffff_ffff)],
];

describe.skipIf(!hasFfmpeg)("a file whose connection may end early", () => {
  for (const [name] of stating) {
    it(`is whole only with its last byte: ${name}`, () => {
      const bytes = bytesOf(name);
      expect(isWholeFile(media.path(name))).toBe(true);
      for (let i = 0; i < 50; i++) {
        const length = i < 5 ? bytes.length - 1 - i * 40 : 1 + ((i * 7919 * 104_729) % (bytes.length - 1));
        writeFileSync(media.path("cut"), bytes.subarray(0, length));
        // Fragments without the index at the end may be all that there are.
        const isStated = name !== "fragments.mp4";
        expect(isWholeFile(media.path("cut"))).toBeOneOf(isStated ? [false] : [false, null]);
      }
    });
  }

  it("is whole only with its last byte if it begins with space of an MP4 that is skipped", () => {
    const bytes = Buffer.concat([Buffer.from("\0\0\0\x08skip"), bytesOf("a.mp4")]);
    writeFileSync(media.path("skip"), bytes);
    expect(isWholeFile(media.path("skip"))).toBe(true);
    writeFileSync(media.path("skip"), bytes.subarray(0, -1));
    expect(isWholeFile(media.path("skip"))).toBe(false);
  });

  for (const [name] of silent) {
    it(`may lack its end if its container does not say where it ends: ${name}`, () => {
      bytesOf(name);
      expect(isWholeFile(media.path(name))).toBe(null);
    });
  }

  it.each(right)("is not taken for a part of one: %s", (_, name, change) => {
    const bytes = bytesOf(name);
    writeFileSync(media.path("right"), change(bytes));
    expect(isWholeFile(media.path("right"))).not.toBe(false);
  });

  it.each([
    ["MP3", "plain.mp3"],
    ["AAC", "a.aac"],
  ])("lacks its end if that is in the middle of a frame of %s", (_, name) => {
    const bytes = bytesOf(name);
    for (const lost of [1, 60, 200]) {
      writeFileSync(media.path("cut"), bytes.subarray(0, -lost));
      expect(isWholeFile(media.path("cut"))).toBe(false);
    }
  });

  async function download(name: string, part: number, hasLength = false) {
    const body = bytesOf(name);
    await using harness = await openEntry(
      () => engine,
      new Map([["a", resource("application/octet-stream", body)]]),
      "a",
    );
    harness.site.answer("a", (response) => {
      response.shouldKeepAlive = false;
      response.useChunkedEncodingByDefault = false;
      const sent = body.subarray(0, body.length * part);
      if (hasLength) response.setHeader("content-length", sent.length);
      response.writeHead(200).end(sent);
    });
    return await harness.download();
  }

  it.each(["a.flac", "a.mp3", "vorbis.ogg", "a.wav", "a.mp4", "index-first.mp4", "a.mkv", "a.ts"])(
    "is no result without a warning if the server has only a part of it, and states the length of that: %s",
    async (name) => {
      expect((await download(name, 1, true)).warnings).toEqual([]);
      for (const part of [0.97, 0.31 + (name.length % 7) / 10]) {
        const outcome = await download(name, part, true).catch(({ code }: { code: string }) => code);
        if (typeof outcome === "string") expect(outcome).toMatch(/^upstream_(?:unreachable|invalid)$/);
        else expect(outcome.warnings).toMatchObject([{ code: "frames_missing" }]);
      }
    },
  );

  it("has a warning if it lacks the last page of Ogg, and its server states the length of the others", async () => {
    const body = bytesOf("vorbis.ogg");
    const { warnings } = await download("vorbis.ogg", body.lastIndexOf("OggS") / body.length, true);
    expect(warnings).toMatchObject([{ code: "frames_missing" }]);
  });

  it("has a warning if it ends with the last page of one stream of Ogg, and another one goes on", async () => {
    const body = bytesOf("streams.ogg");
    const isLast = (page: number) => (body[page + 5]! & 4) !== 0;
    let page = 0;
    while (!isLast(page)) page = body.indexOf("OggS", page + 1);
    const end = body.indexOf("OggS", page + 1);
    const { warnings } = await download("streams.ogg", end / body.length, true);
    expect(warnings).toMatchObject([{ code: "frames_missing" }]);
  });

  it("is no result if it is Vorbis without audio", async () => {
    const body = bytesOf("vorbis.ogg");
    const afterFirst = body.indexOf("OggS", 4) + 100;
    await expect(download("vorbis.ogg", afterFirst / body.length, true)).rejects.toMatchObject({
      code: "upstream_invalid",
    });
  });

  it.each([
    ["vorbis.ogg", 0.6],
    ["opus.ogg", 0.6],
    ["streams.ogg", 0.9],
  ])(
    "has a warning if it ends within a page of Ogg, and its server states the length of what it has: %s",
    async (name, part) => {
      const { warnings, duration } = await download(name, part, true);
      expect(warnings).toMatchObject([{ code: "frames_missing" }]);
      expect(duration, "of its longest stream").toBeGreaterThan(2);
    },
  );

  it("has a warning if it lacks fragments that its index lists, and its server states the length of the others", async () => {
    const body = bytesOf("indexed.mp4");
    const end = body.lastIndexOf("moof") - 4;
    const { warnings } = await download("indexed.mp4", end / body.length, true);
    expect(warnings).toMatchObject([{ code: "frames_missing" }]);
    expect((await download("indexed.mp4", 1, true)).warnings).toEqual([]);
  });

  it("is not a result if its container states more", async () => {
    await expect(download("a.flac", 0.5)).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("has a warning if its container states nothing", async () => {
    const { length } = bytesOf("a.ts");
    const packets = 188 * Math.floor(length / 376);
    const codesOf = async (bytes: number) =>
      (await download("a.ts", (bytes + 0.5) / length)).warnings.map(({ code }) => code);
    expect(await codesOf(packets)).toEqual(["length_unknown"]);
    expect(await codesOf(packets - 60)).toEqual(expect.arrayContaining(["length_unknown", "frames_missing"]));
  });

  it.each([
    ["a.aiff", "aiff", "audio/aiff"],
    ["a.au", "au", "audio/basic"],
    ["a.caf", "caf", "audio/x-caf"],
    ["packets.caf", "caf", "audio/x-caf"],
    ["a.w64", "w64", "audio/x-w64"],
  ])("is kept as published if it is plain audio: %s", async (name, ext, mime_type) => {
    const kept = await download(name, 1);
    expect(kept).toMatchObject({ ext, mime_type, warnings: [] });
    // The last packet of ALAC is padded.
    expect(Math.abs((kept.duration ?? 0) - 2)).toBeLessThan(0.1);
    await expect(download(name, 0.7)).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("has no warning if its container ends with it", async () => {
    expect((await download("a.flac", 1)).warnings).toEqual([]);
  });
});
