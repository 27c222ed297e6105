import { parseQuality, qualityInPath } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { namesTrailer } from "../choice/trailers.ts";
import { names } from "../lexicon/words.ts";
import { listPlayed } from "../lists/played-entries.ts";
import type { Markup, Player } from "../markup/markup.ts";
import { createResource, type ListedMedia, type Resource } from "../metadata.ts";

/**
 * Returns the player of the page's own medium:
 * - the first one with an http or https source, a trailer only if there is no other, or the page calls itself one;
 * - in place of a silent loop, the first video with audio or controls; in place of an advertisement or another silent video, the first one
 *   with controls;
 * - without any source, the page's only player: a script gives it its source, but its poster and its tracks are stated.
 */
export function findPlayer(
  { players }: Markup,
  base: URL,
  { isVideo, isOfTrailer }: { isVideo: boolean; isOfTrailer: boolean },
): Player | null {
  const hasSource = (player: Player) => sourcesOf(player, base).length > 0;
  const others = players.filter((player) => !isSilentLoop(player));
  const stated = (isVideo ? players : others).filter(hasSource);
  const films = isOfTrailer ? [] : stated.filter((player) => !isTrailer(player, base));
  const playable = films.length > 0 ? films : stated;
  const [first] = playable;
  const own = first && ownInstead(first, playable);
  const [only = null, ...more] = others;
  return own ?? first ?? (more.length === 0 ? only : null);
}

/**
 * Returns what the players of a page play that have controls, as people start one after another; null for fewer than two media
 * beside trailers.
 */
export function listPlayers({ players }: Markup, base: URL): ListedMedia | null {
  const listed = players.filter(
    (player) => player.attributes.has("controls") && !player.isAside && !isNamedBesideOwn(player),
  );
  const media = listed.map((player) => ({
    resources: sourcesOf(player, base),
    title: parseLine(player.attributes.get("title") ?? player.attributes.get("aria-label")),
    duration: null,
    thumbnail: tryParseUrl(player.attributes.get("poster"), base),
    isTrailer: isTrailer(player, base),
  }));
  return listPlayed(media);
}

/** Returns the video that is likelier the page's own than `first`. Another one that is silent may be a preview of another page. */
function ownInstead(first: Player, others: readonly Player[]): Player | undefined {
  const isLoop = isSilentLoop(first);
  if (!isLoop && !isBesideOwn(first)) return undefined;
  return others.find(({ kind, attributes }) => {
    return kind === "video" && (attributes.has("controls") || (isLoop && !attributes.has("muted")));
  });
}

const besideOwn = names.bitsOf("advertisement", "background");

/** Whether a video has no controls, and starts by itself without audio or is named as an advertisement or a background. */
function isBesideOwn({ kind, attributes }: Player): boolean {
  if (kind !== "video" || attributes.has("controls")) return false;
  return ["autoplay", "muted"].every((each) => attributes.has(each)) || isNamedBesideOwn({ attributes });
}

function isNamedBesideOwn({ attributes }: Pick<Player, "attributes">): boolean {
  const name = `${attributes.get("id") ?? ""} ${attributes.get("class") ?? ""}`;
  return (names.rolesIn(name) & besideOwn) !== 0;
}

function isTrailer(player: Player, base: URL): boolean {
  const about = ["id", "class", "title", "aria-label"].map((name) => player.attributes.get(name) ?? "");
  return [...about, ...sourcesOf(player, base).map(({ url }) => url.pathname)].some(namesTrailer);
}

/** Returns the URLs of the silent loops among a page's players. */
export function loopUrls({ players }: Markup, base: URL): Set<string> {
  const loops = players.filter(isSilentLoop);
  return new Set(loops.flatMap((player) => sourcesOf(player, base)).map(({ url }) => url.href));
}

/** Whether a player is part of the page's design: a muted loop that starts by itself and has no controls. */
function isSilentLoop({ attributes }: Player): boolean {
  const loops = ["autoplay", "loop", "muted"].every((name) => attributes.has(name));
  return loops && !attributes.has("controls");
}

/** Where the players that use them look for the height of a `<source>`. */
const heightNames = ["res", "size", "label", "title", "data-res", "data-quality", "data-label"];

export function sourcesOf({ kind, attributes, sources }: Player, base: URL): Resource[] {
  return [attributes, ...sources].flatMap((source) => {
    const url = tryParseUrl(source.get("src"), base);
    if (url === null) return [];
    const labels = heightNames.map((name) => parseQuality(source.get(name)));
    const height = labels.find((each) => each !== null) ?? qualityInPath(url);
    const type = source.get("type") ?? null;
    return [createResource(url, "media", { type, fallback: kind, height })];
  });
}
