import { isFrontPage, parseUrls } from "../../parsers/url.ts";
import type { PageIdentity } from "./choice/choose-medium.ts";
import { indexMetas, type Markup } from "./markup/markup.ts";
import type { Thing } from "./markup/thing.ts";
import { type Merged, mergeMetadata, type MetadataSource, type PageMetadata } from "./merge.ts";
import type { Metadata } from "./metadata.ts";
import { extractPlayer } from "./player/extract-player.ts";
import { readItemList, readParts } from "./lists/item-list.ts";
import { nameOfFile } from "./lists/played-entries.ts";
import { readWordPressPlaylists } from "./lists/wordpress-playlist.ts";
import { chooseThing, isMedium } from "./vocabularies/choose-thing.ts";
import { extractHead, extractPlayerElement } from "./vocabularies/html-metadata.ts";
import { parseJsonLd } from "./vocabularies/json-ld.ts";
import { listPlayers, loopUrls, sourcesOf } from "./vocabularies/player-elements.ts";
import { extractOpenGraph, extractTwitter } from "./vocabularies/open-graph.ts";
import { extractMedium, extractPage } from "./vocabularies/schema-org.ts";

interface DraftOptions {
  /** What the page's relative URLs relate to. */
  base: URL;
  now: Date;
  /** The page is that of a player, in a frame of another page. */
  isPlayer: boolean;
  /** The pages of frames that may be players. */
  frames: readonly URL[];
}

/** What a page itself states, merged and by source. */
interface Draft {
  metadata: PageMetadata;
  merged: Merged;
}

/**
 * Extracts and merges what a page itself states. Players' data is read only if no vocabulary
 * states a medium: it may name many, and it takes as long to read as all else. A silent loop that the page shows counts
 * only if it has no other video, as on sites of animations. So does the trailer of a film, if there is no frame that may be a player either.
 */
export function createDraft(markup: Markup, url: URL, options: DraftOptions): Draft {
  const { metadata, trailerUrls } = extractMetadata(markup, url, { ...options, takesTrailers: false });
  const draft = addPlayers(metadata, trailerUrls, { ...options, markup, url });
  if (trailerUrls.length === 0 || hasOther(draft, trailerUrls, markup, options)) return draft;
  return merge(extractMetadata(markup, url, { ...options, takesTrailers: true }).metadata, url);
}

/** Whether a page has anything to play beside silent loops and the trailers at `trailerUrls`. */
function hasOther(
  { merged: { media, fields } }: Draft,
  trailerUrls: readonly URL[],
  markup: Markup,
  { base, frames }: DraftOptions,
): boolean {
  const loops = loopUrls(markup, base);
  const trailers = new Set(trailerUrls.map(pathKey));
  return (
    media.some(({ url }) => !loops.has(url.href)) ||
    fields.embed !== null ||
    fields.entries !== undefined ||
    frames.some((frame) => !trailers.has(pathKey(frame)))
  );
}

/** Players get their settings in the query. */
function pathKey({ host, pathname }: URL): string {
  return host + pathname;
}

/** Adds what players' data say, and leaves out silent loops and trailers beside other videos. */
function addPlayers(
  metadata: PageMetadata,
  trailerUrls: readonly URL[],
  { markup, url, base, isPlayer, frames }: DraftOptions & { markup: Markup; url: URL },
): Draft {
  const stated = merge(metadata, url);
  const mayList = !isPlayer && frames.length === 0 && !isFrontPage(url, stated.merged.fields.language);
  const secondary = new Set([...loopUrls(markup, base), ...trailerUrls.map(({ href }) => href)]);
  const { media, fields } = stated.merged;
  const hasSecondary = [...media.map((medium) => medium.url.href), fields.embed?.url ?? ""].some((each) =>
    secondary.has(each),
  );
  const draft = hasSecondary ? merge(withoutMedia(metadata, secondary), url) : stated;
  const hasMedium = ({ merged }: Draft) => merged.media.some(({ kind }) => kind === "video" || !hasSecondary);
  if (hasMedium(draft)) return (mayList && listOfPlayers(draft, trailerUrls, { markup, url, base })) || draft;
  const list = readWordPressPlaylists(markup.playlists, base);
  if (list !== null) return merge({ ...draft.metadata, player: { list } }, url);
  const mediaType = draft.merged.fields.media_type;
  const page = {
    ...identify(draft, url),
    isMedium: !hasSecondary && (mediaType !== "none" || markup.players.length > 0),
    mediaType,
  };
  const player = extractPlayer(markup, page, { base, mayList });
  const played = Object.keys(player).length === 0 ? draft : merge({ ...draft.metadata, player }, url);
  return hasSecondary && !hasMedium(played) ? stated : played;
}

/** Returns the draft of a page of several players, if it states no medium but these; else null. */
function listOfPlayers(
  draft: Draft,
  trailerUrls: readonly URL[],
  { markup, url, base }: { markup: Markup; url: URL; base: URL },
): Draft | null {
  const { metadata } = draft;
  const pictures = [metadata.og, metadata.twitter].flatMap((each) => each?.thumbnails ?? []);
  const page = {
    ...identify(draft, url),
    pictures: new Set(pictures.map((picture) => picture.url)),
    trailers: new Set(trailerUrls.map(nameOfFile)),
  };
  const list = listPlayers(markup, base, page);
  if (list === null) return null;
  const played = new Set(markup.players.flatMap((player) => sourcesOf(player, base)).map((source) => source.url.href));
  const resources = metadata.html?.resources?.filter((resource) => !played.has(resource.url.href)) ?? [];
  const listed = merge({ ...metadata, html: { ...metadata.html, resources, list } }, url);
  return listed.merged.fields.entries === undefined ? null : listed;
}

/** Returns what a page states without the media at `urls`, except what schema.org describes. */
function withoutMedia(metadata: PageMetadata, urls: ReadonlySet<string>): PageMetadata {
  const without = (each: Metadata = {}): Metadata => {
    return { ...each, resources: (each.resources ?? []).filter(({ url }) => !urls.has(url.href)) };
  };
  const { og, twitter, html } = metadata;
  return { ...metadata, og: without(og), twitter: without(twitter), html: without(html) };
}

function merge(metadata: PageMetadata, url: URL): Draft {
  return { metadata, merged: mergeMetadata(metadata, url) };
}

/** Whose URLs count: each id of each medium is searched for in them. */
const maxPlayers = 10;

/** Returns what a page states about itself; what kind of page it is, its sources say in different ways. */
function identify({ metadata, merged: { fields } }: Draft, url: URL): Omit<PageIdentity, "isMedium" | "mediaType"> {
  const sources = Object.values(metadata);
  const players = [metadata.og, metadata.twitter].flatMap((each) => each?.resources ?? []);
  return {
    titles: sources.map(({ title }) => title).filter((title) => typeof title === "string"),
    urls: [
      url,
      ...parseUrls([...sources.map(({ webpage_url }) => webpage_url), fields.embed?.url], url),
      ...players.slice(0, maxPlayers).map((player) => player.url),
    ],
    duration: fields.duration,
    isFrontPage: isFrontPage(URL.parse(fields.webpage_url) ?? url, fields.language),
  };
}

/** Extracts what each source states, and the URLs of the trailers of a film. `url` is the page's final URL. */
function extractMetadata(
  markup: Markup,
  url: URL,
  { base, now, takesTrailers }: DraftOptions & { takesTrailers: boolean },
): { metadata: PageMetadata; trailerUrls: readonly URL[] } {
  const metas = indexMetas(markup);
  const og = extractOpenGraph(metas, base);
  const twitter = extractTwitter(metas, base);
  const head = extractHead(markup, metas, base);
  const isVideo = og.media_type === "video" || (og.resources ?? []).length > 0;
  const identity = {
    ...identify(merge({ og, twitter, html: head }, url), url),
    isArticle: metas.all("og:type").some((type) => type.slice(0, 100).trim().toLowerCase() === "article"),
    isMedium: og.media_type === "video" || og.media_type === "audio",
    // The audio of a page that has both is usually its article read aloud, with the title of the page.
    mediaType: og.media_type === "audio" ? "audio" : "video",
  } as const;
  // An object of another type, like `shop:lamp`: what its card plays is not the page's video.
  if (og.media_type === "none") twitter.resources = [];
  const things = parseJsonLd(markup.jsonLd);
  const context = { url, base, now, hasPlayer: markup.players.length > 0, takesTrailers };
  const jsonLd = extractGraph("json-ld", things, identity, context);
  const microdata = extractGraph("microdata", markup.items, identity, context);
  const trailerUrls = [...jsonLd.trailerUrls, ...microdata.trailerUrls];
  const player = extractPlayerElement(markup, metas, base, {
    url: URL.parse(head.webpage_url ?? "") ?? url,
    isVideo,
    trailers: new Set(trailerUrls.map(nameOfFile)),
  });
  const html = { ...head, ...player };
  return { metadata: { og, twitter, html, ...jsonLd.metadata, ...microdata.metadata }, trailerUrls };
}

interface GraphContext {
  url: URL;
  base: URL;
  now: Date;
  hasPlayer: boolean;
  takesTrailers: boolean;
}

function extractGraph(
  vocabulary: "json-ld" | "microdata",
  things: readonly Thing[],
  identity: PageIdentity & { isArticle: boolean },
  { url, base, now, hasPlayer, takesTrailers }: GraphContext,
): { metadata: PageMetadata; trailerUrls: readonly URL[] } {
  const { medium, isPart, isOnArticle, pages, trailerUrls } = chooseThing(things, identity, {
    base,
    takesTrailers,
  });
  const metadata: PageMetadata = {};
  const lists = { base, url, isMedium, takesUrls: !isOnArticle && !identity.isArticle && !identity.isFrontPage };
  const list = medium === null && !hasPlayer ? readItemList(things, lists) : null;
  metadata[`${vocabulary} page`] = { ...extractPage(pages, base), list };
  const key: MetadataSource = isPart ? `${vocabulary} part` : vocabulary;
  if (medium !== null) {
    metadata[key] = { ...extractMedium(medium, base, now), parts: readParts(medium, lists) };
  }
  return { metadata, trailerUrls };
}
