import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, layOneFile, mediaPlaylist } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const packet = 188;
const kinds = { "media.ts": readRendition("high.m2t"), "media.mp4": readRendition("muxed.m4s") } as const;
const paths = Object.keys(kinds) as (keyof typeof kinds)[];

/** Ranges of one file, of which the last one has `excess` bytes more; the file lacks its last `missing` bytes. */
async function openRanges(path: keyof typeof kinds, { excess = 0, missing = 0, refusesRanges = false }) {
  const { init, pieces } = kinds[path];
  const last = pieces.at(-1)!;
  const longer = { ...last, data: Buffer.concat([last.data, Buffer.alloc(excess)]) };
  const { resources, lines } = layOneFile(path, { init, pieces: [...pieces.slice(0, -1), longer] });
  const { type, body } = resources.get(path)!;
  const file = resource(type, body.subarray(0, body.length - excess - missing));
  const playlist = hls(mediaPlaylist(lines));
  const entries = merge(
    resources,
    new Map([
      [path, file],
      ["i.m3u8", playlist],
    ]),
  );
  const harness = await openEntry(() => engine, entries, "i.m3u8");
  if (refusesRanges) {
    harness.site.answer(path, (response, serve, { headers }) =>
      headers.range === undefined ? serve() : response.writeHead(416).end(),
    );
  }
  return harness;
}

describe.concurrent("a last byte range that ends after the end of its file", () => {
  for (const path of paths) {
    for (const refusesRanges of [false, true]) {
      it(`is what the file has, if that is as long as listed: ${path}${refusesRanges ? " without ranges" : ""}`, async () => {
        await using harness = await openRanges(path, { excess: 5_000, refusesRanges });
        const made = await harness.download();
        expect((await probe(made.path)).streams).toMatchObject([{ frames: 150 }, { frames: 283 }]);
        expect(made.warnings).toEqual([]);
      });
    }

    it(`is refused if the file ends within a packet or box: ${path}`, async () => {
      await using harness = await openRanges(path, { missing: 5 * packet + 20 });
      await expect(harness.download()).rejects.toThrow(/the resource has only \d+ bytes/);
    });
  }

  it("has a warning if the file lacks media", async () => {
    await using harness = await openRanges("media.ts", { missing: 20 * packet });
    const { warnings } = await harness.download();
    const message = expect.stringMatching(/1 of \d+ segments had fewer bytes than their byte range/);
    expect(warnings).toContainEqual({ code: "frames_missing", message });
  });
});

it("a range counts from the first picture, also if that comes after a discontinuity", async () => {
  const sound = layFiles("sound", readRendition("audio-en.m4s"), "m4s");
  const film = layFiles("film", readRendition("muxed.m4s"), "m4s");
  const playlist = hls(mediaPlaylist([...sound.lines, "#EXT-X-DISCONTINUITY", ...film.lines]));
  const entries = merge(merge(sound.resources, film.resources), new Map([["i.m3u8", playlist]]));
  await using harness = await openEntry(() => engine, entries, "i.m3u8");
  const { path } = await harness.download({ ranges: [{ startS: 1, endS: 2 }] });
  const { streams, durationS } = await probe(path);
  expect(streams.map(({ kind }) => kind)).toEqual(["video", "audio"]);
  expect(durationS).toBeCloseTo(1, 1);
});
