import type { Vocabulary } from "../../page-info.ts";
import { isSamePage } from "../../parsers/url.ts";
import type { Resource } from "./metadata.ts";
import { type MediaType, mediaTypeOf } from "../../parsers/media-type.ts";

export interface Stated extends Resource {
  vocabulary: Vocabulary;
}

/** A resource that is a medium itself: a file or a manifest. */
export interface Medium extends Stated {
  kind: "video" | "audio";
  protocol: "https" | "m3u8" | "dash";
  ext: string | null;
  mime_type: string | null;
}

const maxMedia = 50;

/** The files and manifests among what is stated, each address once. */
export function mediaAmong(stated: readonly Stated[]): Medium[] {
  const media = new Map<string, Medium>();
  for (const each of stated) {
    const medium = mediumOf(each);
    const key = each.url.href.replace(/^http:/, "https:");
    if (medium === null || media.size === maxMedia) continue;
    media.set(key, { ...medium, ...known(media.get(key)) });
  }
  return [...media.values()];
}

/** What the first statement about a medium says; what it leaves open, a later one may add. */
function known(medium: Medium | undefined): Partial<Medium> {
  return Object.fromEntries(Object.entries(medium ?? {}).filter(([, value]) => value !== null));
}

function mediumOf(stated: Stated): Medium | null {
  const { kind, ext, mime_type } = classify(stated);
  if (kind === "video" || kind === "audio")
    return { ...stated, kind, protocol: "https", ext, mime_type };
  if (kind === "hls") return { ...stated, kind: "video", protocol: "m3u8", ext, mime_type };
  if (kind === "dash") return { ...stated, kind: "video", protocol: "dash", ext, mime_type };
  if (kind !== "unknown" || stated.fallback === null || stated.role === "player") return null;
  return { ...stated, kind: stated.fallback, protocol: "https", ext, mime_type };
}

/**
 * The player to embed: the first one, but Flash only where there is no other. An address that is the
 * page's own is no player: pages state it for want of one.
 */
export function embedAmong(stated: readonly Stated[], own: readonly (URL | null)[]): Stated | null {
  const players = stated.filter(
    (each) =>
      each.role !== "media" &&
      !own.some((address) => address !== null && isSamePage(address, each.url)),
  );
  const isA = (...kinds: MediaType["kind"][]) =>
    players.find((each) => mediumOf(each) === null && kinds.includes(classify(each).kind));
  return isA("page", "unknown") ?? isA("flash") ?? null;
}

/**
 * The stated type decides, if it tells anything; but pages call manifests and Flash `video/mp4` too,
 * and there the address knows better.
 */
function classify({ type, url }: Stated): MediaType {
  const byAddress = mediaTypeOf(null, url);
  const byType = mediaTypeOf(type, url);
  const isMislabelled =
    byType.kind === "video" && ["hls", "dash", "flash"].includes(byAddress.kind);
  return byType.kind === "unknown" || isMislabelled ? byAddress : byType;
}
