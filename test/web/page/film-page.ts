import { layFiles, mediaPlaylist, multivariant } from "../../media/hls.ts";
import { readRendition } from "../../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../../media/resources.ts";
import type { Site } from "../../media/site.ts";
import { startTestSite } from "../../media/test-site.ts";
import { landscape } from "./landscape.ts";

/** A site with a page about a film of six seconds, in 720p and 360p. */
interface FilmSite {
  site: Site;
  /** Address of the page. */
  url: string;
  /** Answers requests for segments from the given one on only after `release`. */
  hold(segment: number): void;
  release(): void;
}

export const filmTitle = "Otters at the old harbour";

export async function openFilmSite(fields: Record<string, unknown> = {}): Promise<FilmSite> {
  const low = layFiles("low", readRendition("low.m2t"), "ts");
  const high = layFiles("high", readRendition("high.m2t"), "ts");
  const codecs = "avc1.64000c,mp4a.40.2";
  const listed: Resources = new Map([
    [
      "main.m3u8",
      hls(
        multivariant([
          { uri: "high.m3u8", bandwidth: 110_000, codecs, resolution: "1280x720" },
          { uri: "low.m3u8", bandwidth: 90_000, codecs, resolution: "640x360" },
        ]),
      ),
    ],
    ["high.m3u8", hls(mediaPlaylist(high.lines))],
    ["low.m3u8", hls(mediaPlaylist(low.lines))],
    ["picture.png", resource("image/png", landscape([86, 156, 214], [250, 214, 165], [24, 78, 119]))],
  ]);
  const site = await startTestSite(merge(low.resources, high.resources, listed));
  const about = {
    "@context": "https://schema.org",
    "@type": "VideoObject",
    name: filmTitle,
    author: { "@type": "Person", name: "Film club" },
    duration: "PT6S",
    thumbnailUrl: site.url("picture.png"),
    contentUrl: site.url("main.m3u8"),
    encodingFormat: "application/vnd.apple.mpegurl",
    ...fields,
  };
  const json = JSON.stringify(about).replaceAll("<", "\\u003c");
  site.resources.set(
    "watch",
    resource(
      "text/html; charset=utf-8",
      `<!doctype html><title>Page</title><script type="application/ld+json">${json}</script>`,
    ),
  );
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  return {
    site,
    url: site.url("watch"),
    hold(segment) {
      gate = Promise.withResolvers<void>();
      for (const folder of ["low", "high"]) {
        for (let n = segment; n < 6; n++) {
          site.answer(`${folder}/${n}.ts`, async (_response, serve) => {
            await gate.promise;
            await serve();
          });
        }
      }
    },
    release: () => gate.resolve(),
  };
}
