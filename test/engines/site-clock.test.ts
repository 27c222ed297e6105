import { afterEach, expect, it, vi } from "vitest";
import { ManifestReader } from "../../src/engines/native/sources/manifest-reader.ts";
import { readClock } from "../../src/engines/native/sources/site-clock.ts";
import type { HttpClient, HttpResponse } from "../../src/net/client.ts";
import { formatOf } from "../formats.ts";

afterEach(() => vi.useRealTimers());

const hourMs = 3_600_000;
const url = "http://cdn.test/live.mpd";
const startedMs = Date.now() - 100_000;
const mpd = `<MPD type="dynamic" minimumUpdatePeriod="PT2S" availabilityStartTime="${new Date(startedMs).toISOString()}">
  <Period start="PT0S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="2" media="$Number$.m4s" initialization="i.mp4"/>
  <Representation id="v" bandwidth="1"/></AdaptationSet></Period></MPD>`;

it.each([hourMs, -hourMs])(
  "segments of live DASH stay those that there are if the clock is set by %d ms",
  async (ms) => {
    const site = performance.now() - Date.now();
    const client = {
      get: async () => ({
        headers: new Headers({ date: new Date(performance.now() - site).toUTCString() }),
        url: new URL(url),
        body: (async function* () {
          yield Buffer.from(mpd);
        })(),
      }),
    } as unknown as HttpClient;
    const reader = new ManifestReader(client, new AbortController().signal);
    const count = async () => {
      const format = formatOf("v", { url, manifest_url: url, protocol: "dash" });
      return (await reader.open(format, () => ({}))).segments().segments.length;
    };
    const before = await count();

    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

    expect(Math.abs((await count()) - before)).toBeLessThanOrEqual(1);
  },
);

it("the clock of a site is read from the next source if an MPD states a time that is none", async () => {
  const now = new Date(Date.now() + hourMs).toISOString();
  const sourceOf = (scheme: string, value: string) => ({ schemeIdUri: `urn:mpeg:dash:utc:${scheme}:2014`, value });
  const asked: string[] = [];
  const get = async ({ href }: URL) => {
    asked.push(href);
    return { headers: new Headers(), body: [Buffer.from(now)] } as unknown as HttpResponse;
  };
  const sources = [sourceOf("direct", "soon"), sourceOf("http-iso", "/time")];
  const ahead = await readClock(sources, new URL(url), get);
  expect(Math.abs((ahead ?? 0) - hourMs)).toBeLessThan(10_000);
  expect(asked).toEqual(["http://cdn.test/time"]);
});
