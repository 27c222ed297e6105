import { Parser } from "htmlparser2";
import type { Entry, SiteVideo } from "../../../model/entry.ts";
import { parseDate } from "../../../parsers/date.ts";
import { parseDuration } from "../../../parsers/quantities.ts";
import { parseLine, parseProse, parseLanguage } from "../../../parsers/text.ts";
import { bareMediaType, isMediaKind, mediaTypeOf } from "../../../parsers/media-type.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { type EntrySlice, SliceBuilder } from "../../entries.ts";
import { type Metadata, thumbnailsAt } from "../metadata.ts";
import {
  type Fields,
  first,
  names,
  newFields,
  readNames,
  wrapped,
  wrappers,
  htmlText,
  noteChapter,
  noteTranscript,
  textsOf,
} from "./feed-fields.ts";

/** A document that lists media: what it says of itself, and a slice of its entries. */
export interface MediaList {
  metadata: Omit<Metadata, "resources">;
  slice: EntrySlice;
}

const maxDepth = 64;
const maxAttributes = 1_000;
const maxTextLength = 8_192;
const maxIdLength = 1_000;

/**
 * Reads RSS 2.0, RSS 1.0 and Atom (RFC 4287), with the elements that podcasts and Media RSS add; `start`: entries before those
 * that are wanted. An entry is the enclosure of an item, or its Media RSS content; if no item of the feed has one, the page that an
 * item leads to. Items without such a URL over http or https are left out. Expands no entities but XML's own.
 *
 * Returns null if it is no feed, if it lists nothing, or if its elements are nested over 64 levels or have over 1,000 attributes.
 */
export function readFeed(text: string, url: URL, start: number): MediaList | null {
  const feed = new FeedBuilder(url, start);
  let attributes = 0;
  const state = { isRefused: false };
  const parser = new Parser(
    {
      onopentagname() {
        attributes = 0;
      },
      onattribute() {
        if (++attributes > maxAttributes) refuse();
      },
      onopentag(name, stated) {
        if (!state.isRefused && !feed.open(name.toLowerCase(), stated)) refuse();
      },
      ontext: (part) => feed.text(part),
      onclosetag: () => feed.close(),
    },
    { xmlMode: true },
  );
  function refuse(): void {
    state.isRefused = true;
    parser.pause();
  }
  parser.write(text);
  return state.isRefused ? null : feed.build();
}

const roots: ReadonlySet<string> = new Set(["rss", "feed", "rdf:rdf", "atom:feed"]);
const items: ReadonlySet<string> = new Set(["item", "entry", "atom:entry"]);
const links: ReadonlySet<string> = new Set(["link", "atom:link"]);

class FeedBuilder {
  readonly #url: URL;
  readonly #media: SliceBuilder;
  readonly #pages: SliceBuilder;
  readonly #channel = newFields();
  /** The open elements, innermost last. */
  readonly #stack: string[] = [];
  /** What URLs within each of them are relative to (XML Base). */
  readonly #bases: URL[] = [];
  /** How many items have each id. */
  readonly #ids = new Map<string, number>();
  #item: Fields | null = null;
  /** Depth of the element whose children are read: the channel's or the item's. */
  #parentDepth = 1;
  /** The element whose text is read; of XHTML, that of the elements within it too (RFC 4287 §3.1). */
  #reading: { name: string; depth: number; type: string } | null = null;

  constructor(url: URL, start: number) {
    this.#url = url;
    this.#media = new SliceBuilder(start);
    this.#pages = new SliceBuilder(start);
  }

  /** Returns whether it still may be a feed. */
  open(name: string, attributes: Readonly<Record<string, string>>): boolean {
    this.#stack.push(name);
    this.#bases.push(this.#urlIn(attributes["xml:base"]) ?? this.#base);
    const depth = this.#stack.length;
    if (depth === 1) return roots.has(name);
    if (this.#reading?.type === "xhtml") return depth <= maxDepth;
    this.#reading = null;
    if (name === "channel" && depth === 2) this.#parentDepth = 2;
    else if (items.has(name) && this.#item === null && depth <= 3) {
      this.#item = newFields();
      this.#parentDepth = depth;
    } else this.#openField(name, attributes, depth);
    return depth <= maxDepth;
  }

  text(part: string): void {
    if (this.#reading === null) return;
    const { texts } = this.#fields;
    const { name } = this.#reading;
    const before = texts.get(name) ?? "";
    if (before.length < maxTextLength) texts.set(name, before + part.slice(0, maxTextLength - before.length));
  }

  close(): void {
    this.#closeText();
    const name = this.#stack.pop();
    this.#bases.pop();
    if (this.#item === null || this.#stack.length >= this.#parentDepth || name === undefined) return;
    this.#list(this.#item);
    this.#item = null;
    this.#parentDepth = this.#stack.length;
  }

  #closeText(): void {
    if (this.#reading === null) return;
    const { name, depth, type } = this.#reading;
    if (type === "xhtml" && this.#stack.length > depth) return;
    this.#reading = null;
    const text = this.#fields.texts.get(name);
    if (type === "html" && text !== undefined) this.#fields.texts.set(name, htmlText(text));
  }

  build(): MediaList | null {
    const isOfMedia = this.#media.count > 0;
    const slice = (isOfMedia ? this.#media : this.#pages).build();
    if (slice.count === 0) return null;
    const { texts, link, picture } = this.#channel;
    const uploader = parseLine(first(texts, names.uploader));
    const thumbnails = thumbnailsAt(picture ?? this.#urlIn(first(texts, names.picture)));
    const complete = (entry: Entry) => this.#complete(entry, uploader, thumbnails[0]?.url ?? null);
    return {
      slice: isOfMedia ? { ...slice, listed: slice.listed.map((entry) => entry && complete(entry)) } : slice,
      metadata: {
        webpage_url: (link ?? this.#urlIn(first(texts, names.link)))?.href ?? null,
        title: parseLine(first(texts, names.title)),
        description: parseProse(first(texts, names.description)),
        language: parseLanguage(first(texts, names.language)),
        uploader,
        thumbnails,
      },
    };
  }

  /** An episode has the picture and the author of its podcast, if it states none. An id that several items have identifies none. */
  #complete({ video, ...entry }: Entry, uploader: string | null, thumbnail: string | null): Entry {
    return {
      ...entry,
      thumbnail: entry.thumbnail ?? thumbnail,
      uploader: entry.uploader ?? uploader,
      ...(video !== undefined &&
        this.#ids.get(video.id) === 1 && { video: { ...video, id: `${this.#url.href} ${video.id}` } }),
    };
  }

  get #fields(): Fields {
    return this.#item ?? this.#channel;
  }

  #openField(name: string, attributes: Readonly<Record<string, string>>, depth: number): void {
    const fields = this.#fields;
    const isChild = depth === this.#parentDepth + 1;
    const isWrapped = depth === this.#parentDepth + 2 && wrappers.has(this.#stack.at(-2) ?? "") && wrapped.has(name);
    const { href = "", url = "", type = "", rel = "alternate", duration } = attributes;
    if (isChild && links.has(name) && href !== "") {
      if (rel === "enclosure") fields.medium ??= this.#mediumIn(href, type);
      else if (rel === "alternate") fields.link ??= this.#urlIn(href);
    } else if (name === "enclosure" || name === "media:content") {
      // Of a group of versions, the one that its feed calls the default (Media RSS).
      if (fields.medium !== null && attributes["isDefault"] !== "true") return;
      const medium = this.#mediumIn(url, type || `${attributes["medium"] ?? ""}/*`);
      fields.medium = medium ?? fields.medium;
      if (medium !== null && duration !== undefined) fields.texts.set(name, duration);
    } else if (name === "psc:chapter") noteChapter(fields, attributes);
    else if (name === "podcast:chapters") fields.chaptersUrl ??= this.#urlIn(url);
    else if (name === "podcast:transcript") noteTranscript(fields, this.#urlIn(url), attributes);
    else if (name === "itunes:image" || name === "media:thumbnail") {
      fields.picture ??= this.#urlIn(href || url);
    } else if ((isChild || isWrapped) && readNames.has(name) && !fields.texts.has(name)) {
      this.#reading = { name, depth, type };
    }
  }

  #list(fields: Fields): void {
    const { texts, medium, link, picture } = fields;
    const page = link ?? this.#urlIn(first(texts, names.link));
    const entryAt = (url: URL): Entry => ({
      url: url.href,
      title: parseLine(first(texts, names.title)),
      duration: parseDuration(first(texts, names.duration)),
      thumbnail: picture?.href ?? null,
      uploaded_at: parseDate(first(texts, names.date)),
      uploader: parseLine(first(texts, names.uploader)),
      ...textsOf(fields, parseLanguage(first(this.#channel.texts, names.language))),
    });
    const video = this.#identify(texts);
    if (medium !== null) this.#media.add(() => ({ ...entryAt(medium), ...(video && { video }) }));
    else if (page !== null && this.#media.count === 0) this.#pages.add(() => entryAt(page));
  }

  /** Returns its id within this feed. */
  #identify(texts: Fields["texts"]): SiteVideo | undefined {
    const id = first(texts, names.id)?.trim() ?? "";
    if (id === "" || id.length > maxIdLength) return undefined;
    this.#ids.set(id, (this.#ids.get(id) ?? 0) + 1);
    return { extractor: "feed", id };
  }

  get #base(): URL {
    return this.#bases.at(-1) ?? this.#url;
  }

  #urlIn(text: string | undefined): URL | null {
    return tryParseUrl(text, this.#base);
  }

  /** Returns null for what is no medium by its type, else by its URL. */
  #mediumIn(text: string, type: string): URL | null {
    const url = this.#urlIn(text);
    if (url === null) return null;
    const stated = /^(?:audio|video|image|document|executable)\/\*$/.exec(type)
      ? type.replace("*", "x")
      : bareMediaType(type);
    const { kind, mime_type } = mediaTypeOf(stated, url);
    const isVague = mime_type === null || /^application\/(?:octet-stream|x-|ogg)/.test(mime_type);
    return isMediaKind(kind) || (kind === "unknown" && isVague) ? url : null;
  }
}
