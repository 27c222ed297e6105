import { describe, expect, it } from "vitest";
import type { Download } from "../../../src/engines/engine.ts";
import type { MediaRange } from "../../../src/remux/samples.ts";
import { layFiles, mediaPlaylist } from "../../media/hls.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../../media/resources.ts";
import { formatAt, type OpenEngine, openEntry } from "./harness.ts";

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const packetBytes = 188;

/** What a file says of itself if it is not what its manifest lists. */
export function describeFileWarnings(open: OpenEngine): void {
  async function download(
    { resources, lines }: { resources: Resources; lines: string[] },
    change: (resources: Resources) => void = () => {},
    ranges: readonly MediaRange[] = [],
  ): Promise<Download> {
    const all = merge(resources, new Map([["index.m3u8", hls(mediaPlaylist(lines))]]));
    change(all);
    await using harness = await openEntry(open, all, "index.m3u8");
    return await harness.download({ ranges });
  }

  /** Leaves the audio out of the first segments, of which there are six of a second. */
  const withoutAudio = (count: number) => (resources: Resources) => {
    for (let index = 0; index < count; index++) {
      const segment = resources.get(`mp4/${index}.m4s`)!;
      const body = Buffer.from(segment.body);
      body.write("free", body.lastIndexOf("traf"));
      resources.set(`mp4/${index}.m4s`, { ...segment, body });
    }
  };

  describe.concurrent("warns of", () => {
    it("segments of a live stream that were gone, and when they would be", async () => {
      await using harness = await openEntry(open, stream.resources, "index.m3u8");
      harness.site.resources.delete("ts/2.ts");
      harness.site.resources.delete("ts/3.ts");
      let isOver = false;
      harness.site.answer("index.m3u8", async (_response, serve) => {
        harness.site.resources.set("index.m3u8", hls(mediaPlaylist(stream.lines, isOver)));
        isOver = true;
        await serve();
      });
      const { warnings } = await harness.download();
      expect(codes(warnings)).toEqual(["frames_missing", "gap"]);
      expect(warnings[0]?.message).toBe("2 of 6 segments had no media");
      expect(warnings[1]?.message).toMatch(/^no video from 2\.0 to 4\.0 s; no audio from [12]\.\d /);
    });

    it.each([
      ["compressed video of Matroska that is damaged", "73c588", "6d8088624085503482ec80", ["track_missing"]],
      ["no disabled video of Matroska, which players play", "9c8100", "b98100", []],
    ])("%s", async (_, before, after, expected) => {
      const film = readMedium("h264-aac.mkv");
      Buffer.from(after, "hex").copy(film, film.indexOf(Buffer.from(before, "hex")));
      const resources = new Map([
        ["film.mkv", resource("video/x-matroska", film)],
        ["aac.m4a", resource("audio/mp4", readMedium("aac.m4a"))],
      ]);
      await using harness = await openEntry(open, resources, "film.mkv");
      const { warnings, width } = await harness.download({ audio: formatAt(harness.site.url("aac.m4a")) });
      expect([codes(warnings), width]).toEqual([expected, expected.length > 0 ? null : 160]);
      if (expected.length > 0)
        expect(warnings[0]?.message).toMatch(/^the video of the source cannot be read: its frames are/);
    });

    it("packets of a transport stream that are missing", async () => {
      const { warnings } = await download(stream, (resources) => {
        const segment = resources.get("ts/3.ts")!;
        const { body } = segment;
        const bytes = Buffer.from(body);
        const at = 40 * packetBytes;
        const rest = [bytes.subarray(0, at), bytes.subarray(at + 3 * packetBytes)];
        resources.set("ts/3.ts", { ...segment, body: Buffer.concat(rest) });
      });
      expect(codes(warnings)).toEqual(["frames_missing"]);
      expect(warnings[0]?.message).toMatch(/^(video|audio) is damaged at 1 place/);
    });

    it("a playlist that states more than there is", async () => {
      const lines = stream.lines.map((line) => line.replace(/^#EXTINF:1\.0+,/, "#EXTINF:1.700000,"));
      const { warnings } = await download({ ...stream, lines });
      expect(codes(warnings)).toEqual(["duration_differs"]);
      expect(warnings[0]?.message).toContain("the media last 6.0 s, their manifest says 10.2 s");
    });

    it("times that fall back a little", async () => {
      const muxed = layFiles("mp4", readRendition("muxed.m4s"), "m4s");
      const { warnings } = await download(muxed, (resources) => {
        const segment = resources.get("mp4/3.m4s")!;
        const before = resources.get("mp4/2.m4s")!.body;
        const body = moveDecodeTimes(segment.body, before, -0.3);
        resources.set("mp4/3.m4s", { ...segment, body });
      });
      expect(codes(warnings)).toContain("times_changed");
    });

    it("audio that the format has, but its media have not", async () => {
      const silent = layFiles("ts", readRendition("silent.m2t"), "ts");
      const all = merge(silent.resources, new Map([["index.m3u8", hls(mediaPlaylist(silent.lines))]]));
      await using harness = await openEntry(open, all, "index.m3u8");
      const format = { ...harness.job.format, vcodec: "avc1.42c00b", acodec: "mp4a.40.2" };
      const { warnings } = await harness.download({ format });
      expect(codes(warnings)).toEqual(["track_missing"]);
    });

    it("audio that their init section lists, but no segment has", async () => {
      const muxed = layFiles("mp4", readRendition("muxed.m4s"), "m4s");
      const expected = [{ code: "track_missing", message: "the media list audio, the file has none" }];
      expect((await download(muxed, withoutAudio(6))).warnings).toEqual(expected);
      expect((await download(muxed, withoutAudio(6), [{ startS: 0.2, endS: 0.8 }])).warnings).toEqual(expected);
    });

    it("audio that only segments after those of the ranges have", async () => {
      const muxed = layFiles("mp4", readRendition("muxed.m4s"), "m4s");
      const { warnings } = await download(muxed, withoutAudio(4), [{ startS: 0.2, endS: 1.8 }]);
      expect(warnings).toEqual([{ code: "gap", message: "no audio from 0.2 to 1.8 s of the whole" }]);
    });
  });
}

const codes = (warnings: Download["warnings"]): string[] => warnings.map(({ code }) => code);

/** Moves the decode times of a segment by a share of what the segment before it lasts. */
function moveDecodeTimes(segment: Uint8Array, before: Uint8Array, share: number): Buffer {
  const moved = Buffer.from(segment);
  const earlier = decodeTimes(before);
  for (const [i, { at, time }] of decodeTimes(segment).entries()) {
    const lasts = time - (earlier[i]?.time ?? 0n);
    moved.writeBigUInt64BE(time + BigInt(Math.round(Number(lasts) * share)), at);
  }
  return moved;
}

/** Finds each `tfdt` of version 1 (ISO/IEC 14496-12 §8.8.12). */
function decodeTimes(bytes: Uint8Array): { at: number; time: bigint }[] {
  const buffer = Buffer.from(bytes);
  const found = [];
  for (let at = buffer.indexOf("tfdt"); at >= 0; at = buffer.indexOf("tfdt", at + 4)) {
    expect(buffer[at + 4]).toBe(1);
    found.push({ at: at + 8, time: buffer.readBigUInt64BE(at + 8) });
  }
  return found;
}
