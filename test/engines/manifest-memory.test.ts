import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ManifestReader } from "../../src/engines/native/sources/manifest-reader.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { formatOf } from "../formats.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("the latest MPD of a live stream is kept alone, wherever its reloads are redirected to", async () => {
  const url = "http://cdn.test/live.mpd";
  const mpd = `<MPD type="dynamic" availabilityStartTime="2020-01-01T00:00:00Z" timeShiftBufferDepth="PT10S">
    <Period start="PT0S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="2" media="$Number$.m4s"/>
    <Representation id="v" bandwidth="1"/></AdaptationSet></Period></MPD>`;
  let sessions = 0;
  const read: WeakRef<URL>[] = [];
  const client = {
    get: async () => ({
      headers: new Headers(),
      url: noted(new URL(`${url}?session=${(sessions += 1)}`)),
      body: (async function* () {
        yield Buffer.from(mpd);
      })(),
    }),
  } as unknown as HttpClient;
  // An MPD that is kept keeps the URL that it came from.
  const noted = (from: URL) => {
    read.push(new WeakRef(from));
    return from;
  };
  const reader = new ManifestReader(client, new AbortController().signal);
  const format = formatOf("page", { url, manifest_url: url, protocol: "dash" });
  for (let left = 5; left > 0; left--) await reader.reload(format, () => ({}));
  await nextTurn();
  collect();
  expect(read.filter((each) => each.deref() !== undefined).length).toBeLessThanOrEqual(1);
  expect(sessions).toBe(5);
});
