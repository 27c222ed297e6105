import type { HttpClient } from "../../net/client.ts";
import { createCookieJar } from "../../net/cookies.ts";
import { createPageHeaders } from "../../net/http/site-headers.ts";
import { PageInfo, type Vocabulary } from "../../model/page-info.ts";
import { type Content, readContent } from "./content.ts";
import { addCookies } from "./formats.ts";
import { addSizes } from "./add-sizes.ts";
import { addChapters, describeEnd, type Description } from "./describe-page.ts";
import { acceptPage, LinkFetcher } from "./link-fetcher.ts";
import { createBodies } from "./reader/bodies.ts";
import type { Reader } from "./reader/reader.ts";
import { type EntrySlice, listEntries, startOf } from "../entries.ts";
import type { Resolver } from "../resolver.ts";

export interface PageResolverOptions {
  /** The resolver closes it. */
  client: HttpClient;
  /** Reads what sites send. The resolver does not close it. */
  reader: Reader;
  /** Limit of a page or manifest that is resolved, decoded bytes. */
  pageMaxBytes: number;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Longest time for all requests that the page leads to (oEmbed, manifests, players), milliseconds; default 5,000. */
  linkTimeoutMs?: number;
}

const name = "page";

/** Share of the time before the caller's deadline that is left to the requests that the page leads to. */
const linkShare = 0.9;

/**
 * Creates a resolver that reads what a page states in the public vocabularies: JSON-LD and microdata
 * (schema.org), Open Graph, Twitter Cards, oEmbed, HTML, HLS and DASH; if these name no medium, what its
 * players are set up with, and the page of its embedded player; if it only sends the browser on, what is there. No rule is for a certain site.
 * If the URL is a media file or a manifest, it is described without downloading the medium. A feed, an M3U, a PLS and
 * a page that states no medium but an ItemList, or plays several, have `entries`.
 *
 * `resolve` rejects with the client's errors, and with `upstream_invalid` for a response that is neither
 * page nor medium. If a request that the page leads to fails or the time for it is over, the fields stay as the page
 * states them. For a download, the formats have the cookies that the page and its players have set.
 */
export function createPageResolver(options: PageResolverOptions): Resolver<typeof PageInfo> {
  const { client, reader, pageMaxBytes, now = () => new Date(), linkTimeoutMs = 5_000 } = options;
  const bodies = createBodies();
  return {
    name,
    output: PageInfo,
    async resolve(url, context) {
      const { signal, owner, forDownload = false, deadlineMs = Infinity, referrer = null } = context;
      const entriesStart = startOf(context.entriesCursor, name);
      const fetchedAt = now();
      const cookies = createCookieJar();
      reader.prepare();
      const response = await client.get(url, {
        signal,
        owner,
        maxBytes: pageMaxBytes,
        accept: acceptPage,
        cookies,
        ...(referrer && { headers: createPageHeaders(referrer) }),
      });
      using opened = bodies.open({ signal, owner });
      const reading = { reader, bodies: opened, signal, owner, now: fetchedAt };
      const content = await readContent(response, { ...reading, isPlayer: false, entriesStart });
      const remainingMs = Math.max(0, deadlineMs - performance.now());
      using linkFetcher = new LinkFetcher({
        ...reading,
        client,
        cookies,
        pageUrl: response.url,
        pageMaxBytes,
        timeoutMs: Math.min(linkTimeoutMs, Math.floor(linkShare * remainingMs)),
      });
      const document = { content, url: response.url, from: referrer };
      const deps = { linkFetcher, signal, requestedUrl: url, entriesStart };
      const { described, end } = await describeEnd(document, deps);
      const stated = described.chapters === undefined ? context.chaptersUrl : undefined;
      const listed = stated === undefined ? [] : await linkFetcher.fetchChapters(stated, response.url);
      const divided = addChapters(described, listed, "playlist");
      const sized = await addSizes(divided, end.url, linkFetcher, context);
      const description = withEntries(sized, end.content, entriesStart);
      const info = { url: url.href, ...description, resolver: name, fetched_at: fetchedAt.toISOString() };
      return forDownload ? { ...info, formats: addCookies(info.formats, cookies.toText()) } : info;
    },
    close: () => client.close(),
  };
}

/**
 * Returns the description with one slice of the entries that the document lists. What a page lists beside a medium, or beside
 * what may be a player, is not the page.
 */
function withEntries(described: Description, content: Content, start: number): Description {
  const { entries = [], entries_count = null, sources: stated, ...fields } = described;
  const { entries: vocabulary, ...sources } = stated;
  const description = { ...fields, sources };
  if (content.kind === "list") return addEntries(description, content.list.slice, content.source);
  const isBeside = described.formats.length > 0 || (content.kind === "page" && content.draft.frames.length > 0);
  if (isBeside || vocabulary === undefined) return description;
  const listed = entries.slice(start);
  return addEntries(description, { start, listed, hasMore: false, count: entries_count }, vocabulary);
}

function addEntries(description: Description, slice: EntrySlice, source: Vocabulary): Description {
  const listed = listEntries(name, slice);
  const known = Object.entries(listed).filter(([, value]) => value !== null);
  const sources = Object.fromEntries(known.map(([field]) => [field, source]));
  return { ...description, ...listed, sources: { ...description.sources, ...sources } };
}
