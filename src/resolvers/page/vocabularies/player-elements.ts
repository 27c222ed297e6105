import { parsePixels, parseQuality, qualityInPath } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { createSimilarity, namesTrailer, type PageNames } from "../choice/similarity.ts";
import { names } from "../lexicon/words.ts";
import { listPlayed, nameOfFile } from "../lists/played-entries.ts";
import { isHidden } from "../markup/attributes.ts";
import type { Markup, Player } from "../markup/markup.ts";
import { createResource, type ListedMedia, type Resource } from "../metadata.ts";

/**
 * Returns the player of the page's own medium:
 * - the first one with an http or https source; a trailer only if there is no other or the page calls itself one; one that is hidden or
 *   beside the page's content only if all are;
 * - in place of a silent loop, the first video with audio or controls; in place of an advertisement or another silent video, the first
 *   one with controls;
 * - without any source, the page's only player: a script sets its source, but its poster and its tracks are stated.
 */
export function findPlayer(
  { players }: Markup,
  base: URL,
  { isVideo, takesTrailers, trailers }: { isVideo: boolean; takesTrailers: boolean; trailers: ReadonlySet<string> },
): Player | null {
  const hasSource = (player: Player) => sourcesOf(player, base).length > 0;
  const others = players.filter((player) => !isSilentLoop(player));
  const stated = (isVideo ? players : others).filter(hasSource);
  const films = someOf(stated, (player) => takesTrailers || !isTrailer(player, base, trailers));
  const playable = someOf(films, ({ attributes, isAside }) => !isAside && !isHidden(attributes));
  const [first] = playable;
  const own = first && ownInstead(first, playable);
  const [only = null, ...more] = others;
  return own ?? first ?? (more.length === 0 ? only : null);
}

/** Returns the items of which that holds; all if it holds for none. */
function someOf<T>(items: readonly T[], holds: (item: T) => boolean): readonly T[] {
  const some = items.filter(holds);
  return some.length > 0 ? some : items;
}

/**
 * Returns what the players of a page play that have controls, as people start one after another. Null if one of them is the page's own:
 * - it is the only one, or the only video, or all others are called related ones or the like;
 * - it alone starts by itself, is half as wide again as another, has the page's title or picture, or a file whose name is an id in the page's URL.
 *
 * @param page With the pictures that the page states for itself, and what schema.org calls trailers, by `nameOfFile`.
 */
export function listPlayers(
  { players }: Markup,
  base: URL,
  page: PageNames & { pictures: ReadonlySet<string>; trailers: ReadonlySet<string> },
): ListedMedia | null {
  const listed = players.filter((player) => player.attributes.has("controls") && isInContent(player));
  const media = listed.map((player) => ({
    player,
    resources: sourcesOf(player, base),
    title: parseLine(player.attributes.get("title") ?? player.attributes.get("aria-label")),
    duration: null,
    thumbnail: tryParseUrl(player.attributes.get("poster"), base),
    isTrailer: isTrailer(player, base, page.trailers),
  }));
  const similarity = createSimilarity(page);
  const narrowest = Math.min(...listed.map(widthOf).filter((width) => width > 0));
  const signs: ((medium: (typeof media)[number]) => boolean)[] = [
    (medium) => medium.player.kind === "video" && !medium.isTrailer,
    ({ player, resources }) => !isNamedOther(player, resources),
    ({ player }) => player.attributes.has("autoplay"),
    ({ player }) => widthOf(player) >= 1.5 * narrowest,
    ({ thumbnail }) => thumbnail !== null && page.pictures.has(thumbnail.href),
    ({ title, resources }) => {
      const found = similarity({ titles: title === null ? [] : [title], texts: [], ids: resources.flatMap(idsOf) });
      return found.isId || found.title !== "none";
    },
  ];
  return signs.some((sign) => media.filter(sign).length === 1) ? null : listPlayed(media);
}

/** Returns the name of a file, if it may be an id. */
function idsOf({ url: { pathname } }: Resource): string[] {
  const [id = ""] = fileIn(pathname).split(".");
  return /\d/.test(id) ? [id] : [];
}

function fileIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Whether a player's name says that it is a related one or the like, or its file's name that it is an advertisement or has sign language. */
function isNamedOther(player: Player, resources: readonly Resource[]): boolean {
  return (
    isNamed(player, names.bitsOf("other")) || resources.some(({ url }) => names.has(fileIn(url.pathname), "never"))
  );
}

function widthOf({ attributes }: Player): number {
  return parsePixels(attributes.get("width")) ?? 0;
}

const besideContent = names.bitsOf("advertisement", "background", "preview");

function isInContent(player: Player): boolean {
  return !player.isAside && !isHidden(player.attributes) && !isNamed(player, besideContent);
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
  return ["autoplay", "muted"].every((each) => attributes.has(each)) || isNamed({ attributes }, besideOwn);
}

/** Whether a player's id or class has one of the roles. */
function isNamed({ attributes }: Pick<Player, "attributes">, roles: number): boolean {
  const name = `${attributes.get("id") ?? ""} ${attributes.get("class") ?? ""}`;
  return (names.rolesIn(name) & roles) !== 0;
}

/** @param trailers What schema.org calls trailers, by `nameOfFile` */
function isTrailer(player: Player, base: URL, trailers?: ReadonlySet<string>): boolean {
  const about = ["id", "class", "title", "aria-label"].map((name) => player.attributes.get(name) ?? "");
  const urls = sourcesOf(player, base).map(({ url }) => url);
  const isStated = trailers !== undefined && urls.some((url) => trailers.has(nameOfFile(url)));
  return isStated || [...about, ...urls.map(({ pathname }) => pathname)].some(namesTrailer);
}

/** Returns the URLs of the trailers among a page's players. */
export function trailerUrls({ players }: Markup, base: URL): Set<string> {
  return urlsOf(
    players.filter((player) => isTrailer(player, base)),
    base,
  );
}

function urlsOf(players: readonly Player[], base: URL): Set<string> {
  return new Set(players.flatMap((player) => sourcesOf(player, base)).map(({ url }) => url.href));
}

/** Returns the URLs of the silent loops among a page's players. */
export function loopUrls({ players }: Markup, base: URL): Set<string> {
  return urlsOf(players.filter(isSilentLoop), base);
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
