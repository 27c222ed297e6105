import { describe, expect, it } from "vitest";
import { mediaPlaylist, layFiles, type Laid } from "../../media/hls.ts";
import { probe } from "../../media/probe.ts";
import { readRendition } from "../../media/rendition.ts";
import { hls } from "../../media/resources.ts";
import { type OpenEngine, showEntry, type EngineHarness } from "./harness.ts";

/** Two lines tell of each of the six seconds. */
const stream = (): Laid => layFiles("ts", readRendition("high.m2t"), "ts");

/** HLS whose playlist grows while it is read. */
export function describeLive(open: OpenEngine): void {
  describe.concurrent("records", () => {
    it("a live stream whose segments appear one by one, until it ends", async () => {
      await using trial = await showLive(open, (reading) => ({ until: 3 + 2 * reading }));
      expect(await probe((await trial.download()).path)).toMatchObject(whole);
    });

    it("a live stream that forgets its first segments", async () => {
      await using trial = await showLive(open, (reading) => {
        const until = 4 + reading;
        return { from: until - 4, until };
      });
      expect(await probe((await trial.download()).path)).toMatchObject(whole);
    });

    it("as much of an endless live stream as is wanted", async () => {
      await using trial = await showLive(open, () => ({ until: 6, isEndless: true }));
      const { duration, path } = await trial.download({ maxLiveS: 3 });
      expect(Math.abs((duration ?? 0) - 3)).toBeLessThanOrEqual(0.1);
      expect((await probe(path)).streams).toMatchObject([{ kind: "video", frames: 75 }, {}]);
    });
  });

  it("refuses a live stream with live_stream where none is to be recorded", async () => {
    await using trial = await showLive(open, () => ({ until: 6, isEndless: true }));
    await expect(trial.download({ maxLiveS: 0 })).rejects.toMatchObject({
      code: "live_stream",
      retryable: false,
    });
  });
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

/** A stream that shows what `windowAt` says, by how often its playlist was read before. */
async function showLive(
  open: OpenEngine,
  windowAt: (reading: number) => Window,
): Promise<EngineHarness> {
  const { lines, resources } = stream();
  const trial = await showEntry(open, resources, "index.m3u8");
  let reading = 0;
  trial.site.answer("index.m3u8", async (_response, serve) => {
    const { from = 0, until, isEndless = false } = windowAt(reading);
    reading += 1;
    const shown = [`#EXT-X-MEDIA-SEQUENCE:${from}`, ...lines.slice(2 * from, 2 * until)];
    const isOver = !isEndless && 2 * until >= lines.length;
    trial.site.resources.set("index.m3u8", hls(mediaPlaylist(shown, isOver)));
    await serve();
  });
  return trial;
}
