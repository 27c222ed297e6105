import type { Steps } from "../../parsers/steps.ts";
import { isFrontPage, parseUrls, tryParseUrl } from "../../parsers/url.ts";
import type { Content } from "./content.ts";
import { extractMetadata, type PageMetadata } from "./extract-metadata.ts";
import type { Markup } from "./markup/markup.ts";
import { mergeMetadata, type Merged } from "./merge.ts";
import type { PageIdentity } from "./choice/candidate.ts";
import { extractPlayer } from "./player/extract-player.ts";

/** What a response itself states, merged and by source. */
export interface Draft {
  metadata: PageMetadata;
  merged: Merged;
}

/**
 * Extracts and merges what the response itself states. Players' data is read only if no vocabulary
 * states a medium: it may name many, and it takes as long to read as all else.
 */
export function* createDraft(
  content: Exclude<Content, { kind: "manifest" }>,
  url: URL,
  now: Date,
): Steps<Draft> {
  if (content.kind === "media") return merge({ media: content.metadata }, url);
  const { markup } = content;
  const metadata = yield* extractMetadata(markup, url, now);
  yield;
  const draft = merge(metadata, url);
  if (draft.merged.media.length > 0) return draft;
  const base = tryParseUrl(markup.base, url) ?? url;
  const player = yield* extractPlayer(markup, identify(draft, markup, url), base);
  return player.resources === undefined ? draft : merge({ ...metadata, player }, url);
}

function merge(metadata: PageMetadata, url: URL): Draft {
  return { metadata, merged: mergeMetadata(metadata, url) };
}

function identify({ metadata, merged: { fields } }: Draft, markup: Markup, url: URL): PageIdentity {
  const titles = Object.values(metadata).map(({ title }) => title);
  return {
    titles: titles.filter((title) => typeof title === "string"),
    urls: [url, ...parseUrls([fields.webpage_url, fields.embed?.url], url)],
    duration: fields.duration,
    isFrontPage: isFrontPage(URL.parse(fields.webpage_url) ?? url),
    isMedium: fields.media_type !== "none" || markup.players.length > 0,
    mediaType: fields.media_type,
  };
}
