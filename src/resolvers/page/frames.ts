import { parsePixels } from "../../parsers/quantities.ts";
import { mediaTypeOf } from "../../parsers/media-type.ts";
import { isFrontPage, pageKey, parseUrls } from "../../parsers/url.ts";
import type { PageInfo } from "../../model/page-info.ts";
import { type Attributes, isHidden } from "./markup/attributes.ts";
import { names } from "./lexicon/words.ts";

const maxPlayers = 2;

/** Whether an attribute may have the URL of a frame's page: many pages load it later, or once their visitor agrees (`data-cmp-src`). */
export function isFrameUrl(attribute: string): boolean {
  return attribute === "src" || (attribute.startsWith("data-") && attribute.endsWith("src"));
}

/**
 * Returns the URLs of the players' pages to look for the page's medium in, at most two: the player to embed,
 * then `frames`, as `findPlayerFrames` returns them. The page itself and Flash are none. `isPlayer`: the page is a player's.
 */
export function findPlayers(
  page: Pick<PageInfo, "webpage_url" | "embed" | "media_type" | "language">,
  { frames, url, isPlayer }: { frames: readonly URL[]; url: URL; isPlayer: boolean },
): URL[] {
  const isFront = !isPlayer && page.media_type === "none" && isFrontPage(url, page.language);
  const pageKeys = new Set([url, ...parseUrls([page.webpage_url], url)].map(pageKey));
  const players = new Map(
    [...parseUrls([page.embed?.url], url), ...(isFront ? [] : frames)].map((each) => [pageKey(each), each]),
  );
  return [...players]
    .filter(([key, each]) => !pageKeys.has(key) && mediaTypeOf(null, each).kind !== "flash")
    .map(([, each]) => each)
    .slice(0, maxPlayers);
}

/**
 * Returns the URLs of the `<iframe>` elements that may be players, the likeliest first: those that may be shown full screen, those that
 * are named as a player, those of a video's size, and in a player's page all others. Hidden and tiny ones are left out.
 */
export function findPlayerFrames(frames: readonly Attributes[], base: URL, isInPlayer: boolean): URL[] {
  const found = frames.flatMap((frame) => {
    const later = [...frame].filter(([name]) => isFrameUrl(name)).map(([, value]) => value);
    const [url] = parseUrls([frame.get("src"), ...later], base);
    const points = url === undefined || !mayBePlayer(frame, url.href) ? 0 : pointsOf(frame, url, isInPlayer);
    return url === undefined || points === 0 ? [] : [{ url, points }];
  });
  return found.toSorted((a, b) => b.points - a.points).map(({ url }) => url);
}

/** Whether a frame is visible, and neither its names nor the host and first folder of its URL say that it is something else. */
export function mayBePlayer(frame: Attributes, url: string): boolean {
  const [host = "", folder = ""] = url
    .slice(0, 500)
    .replace(/^(?:https?:)?\/\//i, "")
    .replace(/[?#].*/, "")
    .split("/");
  const about = textsOf(frame, ["id", "name", "class"]);
  return !isHidden(frame) && !isTiny(frame) && ![host, folder, ...about].some((name) => names.has(name, "otherFrame"));
}

function textsOf(frame: Attributes, attributes: readonly string[]): string[] {
  return attributes.map((name) => frame.get(name)?.slice(0, 200) ?? "");
}

function pointsOf(frame: Attributes, { host, pathname }: URL, isInPlayer: boolean): number {
  const about = textsOf(frame, ["id", "name", "class", "title"]);
  const allow = frame.get("allow")?.slice(0, 1_000) ?? "";
  const isFullScreen = frame.has("allowfullscreen") || frame.has("webkitallowfullscreen") || /fullscreen/i.test(allow);
  const isNamed = [`${host}${pathname.slice(0, 300)}`, ...about].some((name) => names.has(name, "player"));
  const points = (isFullScreen ? 8 : 0) + (isNamed ? 4 : 0) + (hasVideoSize(frame) ? 2 : 0);
  return points + (isInPlayer ? 1 : 0);
}

function hasVideoSize(frame: Attributes): boolean {
  const width = parsePixels(frame.get("width")) ?? 0;
  const height = parsePixels(frame.get("height")) ?? 0;
  return width >= 300 && height >= 150 && width / height > 1.2 && width / height < 2.5;
}

function isTiny(frame: Attributes): boolean {
  return ["width", "height"].some((side) => /^\d{1,2}(?:px)?$/.test(frame.get(side)?.trim() ?? ""));
}
