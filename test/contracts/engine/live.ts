import { describe, expect, it } from "vitest";
import { mediaPlaylist, layFiles, type Laid } from "../../media/hls.ts";
import { probe } from "../../media/probe.ts";
import { readRendition } from "../../media/rendition.ts";
import { hls } from "../../media/resources.ts";
import { type OpenEngine, openEntry, type EngineHarness } from "./harness.ts";
import { startTicks } from "../ticks.ts";

/** Two lines for each of the six segments of one second. */
const stream = (): Laid => layFiles("ts", readRendition("high.m2t"), "ts");

/** HLS whose playlist grows during the download. */
export function describeLive(open: OpenEngine): void {
  describe.concurrent("records", () => {
    it("a live stream whose segments appear one by one, until it ends", async () => {
      await using harness = await openLive(open, (reading) => ({ until: 3 + 2 * reading }));
      expect(await probe((await harness.download()).path)).toMatchObject(whole);
    });

    it("a live stream whose playlist drops old segments", async () => {
      await using harness = await openLive(open, (reading) => {
        const until = 4 + reading;
        return { from: until - 4, until };
      });
      expect(await probe((await harness.download()).path)).toMatchObject(whole);
    });

    it("an endless live stream up to maxLiveS", async () => {
      await using harness = await openLive(open, () => ({ until: 6, isEndless: true }));
      const { duration, path } = await harness.download({ maxLiveS: 3 });
      expect(Math.abs((duration ?? 0) - 3)).toBeLessThanOrEqual(0.1);
      expect((await probe(path)).streams).toMatchObject([{ kind: "video", frames: 75 }, {}]);
    });
  });

  describe.concurrent("ends a recording that is to finish", () => {
    it("with what there is, while the stream goes on", async () => {
      await using harness = await openLive(open, () => ({ until: 3, isEndless: true }));
      const finish = new AbortController();
      const downloading = harness.download({}, undefined, finish.signal);
      await harness.whenDownloaded(segmentBytes(3));
      expect(harness.progress.at(-1)).toMatchObject({ is_live: true });
      finish.abort();
      const { path, duration, warnings } = await downloading;
      expect((await probe(path)).streams).toMatchObject([{ kind: "video", frames: 75 }, {}]);
      expect(Math.abs((duration ?? 0) - 3)).toBeLessThanOrEqual(0.1);
      expect(warnings).toEqual([]);
    });

    it("although its server no longer responds", async () => {
      let isSilent = false;
      await using harness = await openLive(open, () => ({ until: 3, isEndless: true }));
      const finish = new AbortController();
      const downloading = harness.download({}, undefined, finish.signal);
      await harness.whenDownloaded(segmentBytes(3));
      harness.site.answer("index.m3u8", () => {
        isSilent = true;
      });
      await harness.site.until(() => isSilent);
      const elapsedMs = startTicks();
      finish.abort();
      expect((await probe((await downloading).path)).streams[0]).toMatchObject({ frames: 75 });
      expect(elapsedMs()).toBeLessThan(10_000);
    });

    it("with all that earlier runs have recorded", async () => {
      let isKilled = false;
      await using harness = await openLive(open, () => ({
        from: isKilled ? 3 : 0,
        until: isKilled ? 6 : 3,
        isEndless: true,
      }));
      const controller = new AbortController();
      const downloading = harness.download({}, controller.signal);
      downloading.catch(() => {});
      await harness.whenDownloaded(segmentBytes(3));
      controller.abort("killed");
      await expect(downloading).rejects.toBe("killed");
      isKilled = true;
      const { path } = await harness.download({}, undefined, AbortSignal.abort());
      expect((await probe(path)).streams[0]).toMatchObject({ kind: "video", frames: 75 });
    });

    it("not before it has a segment", async () => {
      await using harness = await openLive(open, () => ({ until: 2, isEndless: true }));
      const { path } = await harness.download({}, undefined, AbortSignal.abort());
      expect((await probe(path)).streams[0]?.frames).toBeGreaterThanOrEqual(25);
    });

    it("and changes nothing for media that are not live", async () => {
      await using harness = await openLive(open, () => ({ until: 6 }));
      const { path } = await harness.download({}, undefined, AbortSignal.abort());
      expect(await probe(path)).toMatchObject(whole);
      expect(harness.progress.at(-1)).not.toHaveProperty("is_live");
    });
  });

  it("refuses a live stream with live_stream if maxLiveS is 0", async () => {
    await using harness = await openLive(open, () => ({ until: 6, isEndless: true }));
    await expect(harness.download({ maxLiveS: 0 })).rejects.toMatchObject({
      code: "live_stream",
      retryable: false,
    });
  });
}

/** Bytes of the first segments. */
function segmentBytes(count: number): number {
  const { pieces } = readRendition("high.m2t");
  return pieces.slice(0, count).reduce((sum, { data }) => sum + data.length, 0);
}

const whole = {
  streams: [
    { kind: "video", frames: 150 },
    { kind: "audio", frames: 283 },
  ],
};

interface Window {
  from?: number;
  until: number;
  isEndless?: boolean;
}

/** A stream whose playlist lists `windowAt(n)` after `n` earlier reads. */
async function openLive(open: OpenEngine, windowAt: (reading: number) => Window): Promise<EngineHarness> {
  const { lines, resources } = stream();
  const harness = await openEntry(open, resources, "index.m3u8");
  let reading = 0;
  harness.site.answer("index.m3u8", async (_response, serve) => {
    const { from = 0, until, isEndless = false } = windowAt(reading);
    reading += 1;
    const shown = [`#EXT-X-MEDIA-SEQUENCE:${from}`, ...lines.slice(2 * from, 2 * until)];
    const hasEnded = !isEndless && 2 * until >= lines.length;
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(shown, hasEnded)));
    await serve();
  });
  return harness;
}
