import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { isWholeFile } from "../../src/engines/native/inspect/whole-file.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { resource } from "../media/resources.ts";
import { audioInput, createMediaFolder, hasFfmpeg, videoInput, x264 } from "../remux/ts-media.ts";

const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32", idleTimeoutMs: 500 });
const media = createMediaFolder();
afterAll(async () => {
  media.remove();
  await engine.close();
});

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
];

describe.skipIf(!hasFfmpeg)("a file whose server states no length, and whose connection ends,", () => {
  for (const [name, args] of stating) {
    it(`is whole only with its last byte: ${name}`, () => {
      const bytes = media.make(name, ...args);
      expect(isWholeFile(media.path(name))).toBe(true);
      for (let i = 0; i < 50; i++) {
        const length = i < 5 ? bytes.length - 1 - i * 40 : 1 + ((i * 7919 * 104_729) % (bytes.length - 1));
        writeFileSync(media.path("cut"), bytes.subarray(0, length));
        expect(isWholeFile(media.path("cut"))).not.toBe(true);
      }
    });
  }

  for (const [name, args] of silent) {
    it(`may lack its end if its container does not say where it ends: ${name}`, () => {
      media.make(name, ...args);
      expect(isWholeFile(media.path(name))).toBe(null);
    });
  }

  async function download(name: string, part: number) {
    const body = media.make(name, ...[...stating, ...silent].find(([known]) => known === name)![1]);
    await using harness = await openEntry(
      () => engine,
      new Map([["a", resource("application/octet-stream", body)]]),
      "a",
    );
    harness.site.answer("a", (response) => {
      response.shouldKeepAlive = false;
      response.useChunkedEncodingByDefault = false;
      response.writeHead(200).end(body.subarray(0, body.length * part));
    });
    return await harness.download();
  }

  it("is not a result if its container states more", async () => {
    await expect(download("a.flac", 0.5)).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("has a warning if its container states nothing", async () => {
    const { warnings } = await download("a.ts", 0.5);
    expect(warnings).toMatchObject([{ code: "length_unknown" }]);
  });

  it.each([
    ["a.aiff", "aiff", "audio/aiff"],
    ["a.au", "au", "audio/basic"],
    ["a.caf", "caf", "audio/x-caf"],
    ["packets.caf", "caf", "audio/x-caf"],
    ["a.w64", "w64", "audio/x-w64"],
  ])("is kept as published if it is plain audio: %s", async (name, ext, mime_type) => {
    const made = await download(name, 1);
    expect(made).toMatchObject({ ext, mime_type, warnings: [] });
    // The last packet of ALAC is padded.
    expect(Math.abs((made.duration ?? 0) - 2)).toBeLessThan(0.1);
    await expect(download(name, 0.7)).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("has no warning if its container ends with it", async () => {
    expect((await download("a.flac", 1)).warnings).toEqual([]);
  });
});
