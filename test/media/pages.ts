import type { MediaFixture } from "./media-fixtures.ts";
import { resource, type Resource } from "./resources.ts";

/** The ways in which a page leads to its medium. */
export const pageStyles = ["og", "video", "json-ld"] as const;
type PageStyle = (typeof pageStyles)[number];

/** A page about the fixture at `url`, the address of the fixture's entry. */
export function pageAbout(
  { name, entry, resources }: Pick<MediaFixture, "name" | "entry" | "resources">,
  url: string,
  style: PageStyle,
): Resource {
  const type = resources.get(entry)?.type ?? "";
  const kind = type.startsWith("audio/") ? "audio" : "video";
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(name)}</title>`;
  return resource("text/html; charset=utf-8", html + bodies[style](url, type, kind, name));
}

type Body = (url: string, type: string, kind: string, name: string) => string;

const bodies: Readonly<Record<PageStyle, Body>> = {
  og: (url, type, kind, name) =>
    `<meta property="og:title" content="${escapeHtml(name)}">` +
    `<meta property="og:${kind}" content="${escapeHtml(url)}">` +
    `<meta property="og:${kind}:type" content="${escapeHtml(type)}"></head><body></body></html>`,
  video: (url, type, kind) =>
    `</head><body><${kind} controls><source src="${escapeHtml(url)}" type="${escapeHtml(type)}">` +
    `</${kind}></body></html>`,
  "json-ld": (url, type, kind, name) => {
    const thing = {
      "@context": "https://schema.org",
      "@type": kind === "audio" ? "AudioObject" : "VideoObject",
      name,
      uploadDate: "2026-01-31",
      contentUrl: url,
      encodingFormat: type,
    };
    const json = JSON.stringify(thing).replaceAll("<", "\\u003c");
    return `<script type="application/ld+json">${json}</script></head><body></body></html>`;
  },
};

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
