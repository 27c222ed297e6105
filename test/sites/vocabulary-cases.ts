import { casePage, inScript, media, type SiteCase } from "./site-case.ts";

const hlsType = "application/x-mpegURL";
const videoTag = (url: string, type: string) => ({
  body: `<video controls><source src="${url}" type="${type}"></video>`,
});

/** Pages that state their medium in a public vocabulary. */
export const vocabularyCases: readonly SiteCase[] = [
  casePage("og:video alone, a file", media.mp4, (url) => ({
    head: `<meta property="og:video" content="${url}">`,
  })),
  casePage("og:video alone, HLS", media.hls, (url) => ({
    head: `<meta property="og:video" content="${url}"><meta property="og:video:type" content="${hlsType}">`,
  })),
  casePage("a stream of a Twitter card", media.mp4, (url) => ({
    head:
      `<meta name="twitter:card" content="player"><meta name="twitter:player:stream" content="${url}">` +
      '<meta name="twitter:player:stream:content_type" content="video/mp4">',
  })),
  casePage("a video element", media.webm, (url) => videoTag(url, "video/webm")),
  casePage("JSON-LD", media.mp4, (url) => {
    const thing = {
      "@context": "https://schema.org",
      "@type": "VideoObject",
      name: "The film",
      contentUrl: url,
    };
    return { head: `<script type="application/ld+json">${inScript(thing)}</script>` };
  }),
  casePage("HLS of two qualities", media.hlsQualities, (url) => videoTag(url, hlsType)),
  casePage("HLS with its audio apart", media.hlsLanguages, (url) => videoTag(url, hlsType)),
  casePage("HLS under AES-128", media.hlsEncrypted, (url) => videoTag(url, hlsType)),
  casePage("DASH", media.dash, (url) => videoTag(url, "application/dash+xml")),
  casePage("DASH of a file for each track", media.dashFiles, (url) => videoTag(url, "application/dash+xml")),
];
