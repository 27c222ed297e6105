import { describe, expect, it } from "vitest";
import { layFiles, layOneFile, mediaPlaylist } from "../../media/hls.ts";
import { readMedium, readRendition } from "../../media/rendition.ts";
import { dash, hls, merge, resource, type Resources } from "../../media/resources.ts";
import { type OpenEngine, openEntry } from "./harness.ts";

/** Media that cannot or must not be downloaded; not retryable. */
export function describeRefusals(open: OpenEngine): void {
  describe.concurrent("refuses", () => {
    for (const { name, entry, resources, code, asked } of cases()) {
      it(`${name} with ${code}`, async () => {
        await using harness = await openEntry(open, resources, entry);
        await expect(harness.download()).rejects.toMatchObject({
          name: "ServiceError",
          code: expect.stringMatching(`^(?:${code.replaceAll(" or ", "|")})$`),
          retryable: false,
        });
        if (asked !== undefined) {
          expect(harness.site.asked.map(({ path }) => path).toSorted()).toEqual(asked.toSorted());
        }
      });
    }
  });
}

interface Case {
  name: string;
  entry: string;
  resources: Resources;
  code: string;
  /** Paths that may be requested before the refusal; absent: any. */
  asked?: string[];
}

function cases(): Case[] {
  return [...locked(), ...noMedia()];
}

const stream = layFiles("ts", readRendition("high.m2t"), "ts");

function locked(): Case[] {
  const under = (name: string, key: string): Case => ({
    name: `HLS with ${name}`,
    entry: "index.m3u8",
    resources: playlist(mediaPlaylist([`#EXT-X-KEY:${key}`, ...stream.lines])),
    code: "drm_protected",
    asked: ["index.m3u8"],
  });
  const cenc =
    '<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc"/>' +
    '<ContentProtection schemeIdUri="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"/>';
  const medium = readMedium("locked.m4s");
  const init = medium.subarray(0, medium.indexOf("moof") - 4);
  const rendition = { init, pieces: [{ data: medium.subarray(init.length), durationS: 6 }] };
  const silentlyLocked = layOneFile("locked.mp4", rendition);
  return [
    under("FairPlay", 'METHOD=SAMPLE-AES,URI="skd://1",KEYFORMAT="com.apple.streamingkeydelivery"'),
    under(
      "Widevine",
      'METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,AAAA",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"',
    ),
    {
      name: "DASH with Widevine",
      entry: "main.mpd",
      resources: manifest("static", cenc),
      code: "drm_protected",
      asked: ["main.mpd"],
    },
    {
      name: "fMP4 with DRM that only the media states",
      entry: "index.m3u8",
      resources: merge(silentlyLocked.resources, playlist(mediaPlaylist(silentlyLocked.lines))),
      code: "drm_protected",
    },
    {
      name: "fMP4 whose samples are encrypted with a plain key",
      entry: "index.m3u8",
      resources: merge(
        silentlyLocked.resources,
        playlist(
          mediaPlaylist([`#EXT-X-KEY:METHOD=SAMPLE-AES,URI="data:,${"x".repeat(16)}"`, ...silentlyLocked.lines]),
        ),
      ),
      code: "drm_protected",
    },
  ];
}

function noMedia(): Case[] {
  const html = resource("text/html", "<!doctype html><title>Please log in</title>".repeat(200));
  const noise = resource("video/mp4", Buffer.alloc(40_000, "no medium at all "));
  const none = resource("video/mp4", "");
  const code = "upstream_invalid or format_unavailable";
  const one = (name: string, entry: string, resources: Resources): Case => ({
    name,
    entry,
    resources,
    code,
  });
  const insteadOf = (path: string, other: typeof html): Resources =>
    merge(stream.resources, playlist(mediaPlaylist(stream.lines)), new Map([[path, other]]));
  const emptySound = resource("audio/mp4", readMedium("aac.m4a").subarray(0, 32));
  return [
    one("an HTML page instead of a file", "film.mp4", new Map([["film.mp4", html]])),
    one("noise instead of a file", "film.mp4", new Map([["film.mp4", noise]])),
    one("an empty file", "film.mp4", new Map([["film.mp4", none]])),
    one("a file with only a header", "film.m4a", new Map([["film.m4a", emptySound]])),
    one("an HTML page instead of a playlist", "index.m3u8", new Map([["index.m3u8", html]])),
    one("an HTML page instead of a manifest", "main.mpd", new Map([["main.mpd", html]])),
    one("an HTML page instead of the first segment", "index.m3u8", insteadOf("ts/0.ts", html)),
    one("noise instead of the first segment", "index.m3u8", insteadOf("ts/0.ts", noise)),
    one("an empty playlist", "index.m3u8", playlist(mediaPlaylist([]))),
  ];
}

function playlist(text: string): Resources {
  return new Map([["index.m3u8", hls(text)]]);
}

function manifest(type: string, protection: string): Resources {
  const text =
    `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="${type}" ` +
    'availabilityStartTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT1S" ' +
    'mediaPresentationDuration="PT6S"><Period>' +
    `<AdaptationSet mimeType="video/mp4">${protection}` +
    '<Representation id="v" bandwidth="50000" codecs="avc1.64000c" width="160" height="90">' +
    '<SegmentTemplate initialization="v/init.m4s" media="v/$Number$.m4s" duration="1"/>' +
    "</Representation></AdaptationSet></Period></MPD>";
  return new Map([["main.mpd", dash(text)]]);
}
