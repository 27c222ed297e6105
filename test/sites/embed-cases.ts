import type { MediaFixture } from "../media/media-fixtures.ts";
import type { Site } from "../media/site.ts";
import { media, type PageParts, servePage, type SiteCase } from "./site-case.ts";

const videoPage = (url: string): PageParts => ({ body: `<video controls src="${url}"></video>` });
const iframe = (url: string): PageParts => ({
  body: `<iframe src="${url}" width="640" height="360" allowfullscreen></iframe>`,
});
const jwPage = (url: string): PageParts => ({
  body: `<div id="p"></div><script>jwplayer("p").setup({file: "${url}"});</script>`,
});

/** Pages whose player is another page. */
export const embedCases: readonly SiteCase[] = [
  embedded("an iframe with a video element", media.mp4, iframe, videoPage),
  embedded("an iframe with HLS in JW Player", media.hls, iframe, jwPage),
  embedded(
    "a player in og:video:url",
    media.mp4,
    (url) => ({
      head: `<meta property="og:video:url" content="${url}"><meta property="og:video:type" content="text/html">`,
    }),
    jwPage,
  ),
  embedded(
    "a player in a Twitter card",
    media.mp4,
    (url) => ({
      head: `<meta name="twitter:card" content="player"><meta name="twitter:player" content="${url}">`,
    }),
    videoPage,
  ),
  {
    name: "an iframe in an iframe",
    media: media.mp4,
    prepare(site, { entry }) {
      servePage(site, "watch", iframe(site.url("embed/outer")));
      servePage(site, "embed/outer", iframe(site.url("embed/inner")));
      servePage(site, "embed/inner", videoPage(site.url(entry)));
    },
  },
];

function embedded(
  name: string,
  fixture: string,
  outer: (url: string) => PageParts,
  inner: (url: string) => PageParts,
): SiteCase {
  return {
    name,
    media: fixture,
    prepare(site: Site, { entry }: MediaFixture) {
      servePage(site, "watch", outer(site.url("embed/film")));
      servePage(site, "embed/film", inner(site.url(entry)));
    },
  };
}
