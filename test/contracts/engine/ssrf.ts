import { describe, expect, it } from "vitest";
import { layFiles, mediaPlaylist } from "../../media/hls.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { dash, hls, merge, resource, type Resources } from "../../media/resources.ts";
import { type OpenEngine, openEntry, type EngineHarness } from "./harness.ts";

const stream = layFiles("ts", readRendition("high.m2t"), "ts");
const fragments = layFiles("fmp4", readRendition("muxed.m4s"), "m4s");

/** URLs outside `allowNetworks`; no server listens there. */
const forbidden = ["http://127.0.0.2:9/x", "http://[::1]:9/x", "http://10.0.0.1/x", "file:///etc/passwd"];

/** Media that try to make the engine send requests into the private network. */
export function describeSsrf(open: OpenEngine): void {
  describe.concurrent("fails with address_blocked if", () => {
    for (const address of forbidden) {
      it(`a playlist names the segment ${address}`, () =>
        expectBlocked(open, playlist([...stream.lines, "#EXTINF:1,", address]), "index.m3u8"));

      it(`a playlist names the key ${address}`, () =>
        expectBlocked(open, playlist([`#EXT-X-KEY:METHOD=AES-128,URI="${address}"`, ...stream.lines]), "index.m3u8"));

      it(`a playlist names the init section ${address}`, () =>
        expectBlocked(open, playlist([`#EXT-X-MAP:URI="${address}"`, ...fragments.lines.slice(1)]), "index.m3u8"));

      it(`a manifest names the base ${address}`, () =>
        expectBlocked(open, new Map([["main.mpd", dash(manifestAt(address))]]), "main.mpd"));
    }

    for (const address of forbidden.slice(0, 3)) {
      for (const [what, path] of [
        ["a file", "film.mp4"],
        ["a playlist", "index.m3u8"],
        ["a segment", "ts/3.ts"],
      ] as const) {
        it(`${what} redirects to ${address}`, async () => {
          const entry = path === "film.mp4" ? path : "index.m3u8";
          const film = resource("video/mp4", readMedium("index-first.mp4"));
          const resources = merge(playlist(stream.lines), new Map([["film.mp4", film]]));
          await using harness = await openEntry(open, resources, entry);
          harness.site.answer(path, (response) => response.writeHead(302, { location: address }).end());
          await expectBlockedDownload(harness);
        });
      }
    }
  });
}

async function expectBlocked(open: OpenEngine, resources: Resources, entry: string): Promise<void> {
  await using harness = await openEntry(open, resources, entry);
  await expectBlockedDownload(harness);
}

function expectBlockedDownload(harness: EngineHarness): Promise<void> {
  return expect(harness.download()).rejects.toMatchObject({
    name: "ServiceError",
    code: "address_blocked",
    retryable: false,
  });
}

function playlist(lines: string[]): Resources {
  const text = hls(mediaPlaylist(lines));
  return merge(stream.resources, fragments.resources, new Map([["index.m3u8", text]]));
}

function manifestAt(base: string): string {
  return (
    '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" ' +
    `mediaPresentationDuration="PT6S"><BaseURL>${base}/</BaseURL><Period>` +
    '<AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="50000">' +
    '<SegmentTemplate initialization="init.m4s" media="$Number$.m4s" duration="1"/>' +
    "</Representation></AdaptationSet></Period></MPD>"
  );
}
