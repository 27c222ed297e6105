import { decodeHTML } from "entities";
import { type Attributes, isDecoration, parseAttributes } from "./attributes.ts";
import { maxBytesPerUnit, type PageText } from "./charset.ts";
import { type HtmlSink, scanHtml, type StartTag } from "./html.ts";
import type { Markup, Player } from "./markup.ts";
import { MicrodataReader } from "./microdata.ts";

const maxMetas = 2_000;
const maxLinks = 500;
/** Of a `<meta>`, in one attribute: each name has the whole content. And their UTF-16 code units. */
const maxNames = 10;
const maxNamesLength = 1_000;
/** Of a `rel`, UTF-16 code units. */
const maxRelLength = 200;
const maxJsonLdBlocks = 100;
/** Longer blocks are ignored, UTF-16 code units. */
const maxJsonLdLength = 1024 * 1024;
const maxTitleSource = 10_000;
const maxPlayers = 500;
const maxSources = 100;
const maxFrames = 50;
/** Scripts and tags that may hold a player's data. */
const maxPlayerSources = 10_000;

/** What shows that a link is used: its relation, its media type or the extension of the file that it has fetched. */
const usedLink = /canonical|image_src|oembed|mpegurl|dash|m3u8|mpd/i;
const elements = new Set("html base title meta link script video audio source track iframe".split(" "));

/** Those that may hold a player's data whatever the names of their attributes are. */
const dataElements = new Set("embed iframe input object param".split(" "));
/** Those whose contents are beside what the page is about. */
const asideElements = new Set("aside footer nav".split(" "));
const reported = new Set([...elements, ...dataElements, ...asideElements]);

/** Reads a page. */
export function readMarkup(pageText: PageText): Markup {
  const collector = new MarkupCollector(pageText);
  scanHtml(pageText.text, collector);
  return collector.end();
}

class MarkupCollector implements HtmlSink {
  readonly elements = reported;
  wantsAllTags = false;
  wantsText = false;
  readonly #microdata: MicrodataReader;
  readonly #markup: Markup;
  #player: Player | null = null;
  /** Whether `#player` is part of the page's design; null: not known yet. */
  #isDecoration: boolean | null = null;
  /** `#player` stands for an element such as `<amp-video>`: it ends with the next tag that is no part of a player. */
  #isPlayerImplied = false;
  /** Of what the next raw text is: null for that of no use. */
  #rawKind: "title" | "json-ld" | "playlist" | "script" | null = null;
  #linkCount = 0;
  /** Open `asideElements`. */
  #asideDepth = 0;

  constructor(pageText: PageText) {
    this.#microdata = new MicrodataReader(pageText);
    this.#markup = {
      language: null,
      base: null,
      title: null,
      metas: [],
      links: new Map(),
      jsonLd: [],
      playlists: [],
      players: [],
      frames: [],
      playerSources: [],
      pageText,
      items: this.#microdata.items,
    };
  }

  open({ name, source, hasMicrodata, mayHoldData, isForeign }: StartTag): boolean {
    this.#rawKind = null;
    if (asideElements.has(name)) this.#asideDepth += 1;
    if (this.#isPlayerImplied && name !== "source" && name !== "track") this.#player = null;
    if ((mayHoldData || dataElements.has(name)) && !this.#isInDecoration(name))
      addBounded(this.#markup.playerSources, { name, source }, maxPlayerSources);
    const isJson = name === "script" && /json/i.test(source);
    const isIgnored = (name === "script" && !isJson) || (name === "link" && !usedLink.test(source));
    const isKnown = elements.has(name) && !isIgnored;
    const attributes = isKnown || hasMicrodata ? parseAttributes(this.#markup.pageText.decode(source)) : null;
    if (name === "script") this.#collectScript(isJson ? attributes : null);
    else if (isKnown && attributes !== null) this.#collect(name, attributes, isForeign);
    if (hasMicrodata || this.wantsAllTags) {
      this.#microdata.open(name, hasMicrodata ? attributes : null);
      this.#update();
    }
    return this.#rawKind !== null;
  }

  close(name: string): void {
    if (name === "video" || name === "audio") this.#player = null;
    if (asideElements.has(name) && this.#asideDepth > 0) this.#asideDepth -= 1;
    if (!this.wantsAllTags) return;
    this.#microdata.close(name);
    this.#update();
  }

  text(text: string): void {
    this.#microdata.text(text);
  }

  rawText(text: string): void {
    const { pageText, jsonLd, playlists, playerSources } = this.#markup;
    if (this.#rawKind === "title") {
      const source = pageText.decode(text.slice(0, maxTitleSource * maxBytesPerUnit));
      this.#markup.title = decodeHTML(source.slice(0, maxTitleSource));
      return;
    }
    // A playlist of one video is like what any player is set up with.
    if (this.#rawKind !== "json-ld" && text !== "") addBounded(playerSources, { script: text }, maxPlayerSources);
    if (this.#rawKind === "script" || text.length > maxJsonLdLength * maxBytesPerUnit) return;
    const source = pageText.decode(text);
    if (source.length <= maxJsonLdLength) (this.#rawKind === "json-ld" ? jsonLd : playlists).push(source);
  }

  /** Closes what is still open and returns the result. */
  end(): Markup {
    this.#microdata.end();
    return this.#markup;
  }

  /** Whether it is a `<source>` of a video that is a part of the page's design. */
  #isInDecoration(name: string): boolean {
    const player = this.#player;
    if (name !== "source" || player === null) return false;
    return (this.#isDecoration ??= isDecoration(player.kind, player.attributes));
  }

  #update(): void {
    this.wantsAllTags = this.#microdata.isInItem;
    this.wantsText = this.#microdata.wantsText;
  }

  #collect(name: string, attributes: Attributes, isForeign: boolean): void {
    const markup = this.#markup;
    if (name === "meta") addMeta(markup, attributes);
    else if (name === "link") {
      if (this.#linkCount++ < maxLinks) addLink(markup, attributes);
    } else if (name === "iframe") addBounded(markup.frames, attributes, maxFrames);
    else if (name === "html") markup.language ??= attributes.get("lang") || attributes.get("xml:lang") || null;
    else if (name === "base") markup.base ??= attributes.get("href") ?? null;
    else if (name === "title") {
      if (markup.title === null && !isForeign) this.#rawKind = "title";
    } else this.#collectMedia(name, attributes);
  }

  #collectScript(attributes: Attributes | null): void {
    const { jsonLd, playlists, playerSources } = this.#markup;
    const kind = attributes === null ? "script" : kindOfJson(attributes);
    const isTaken =
      kind === "script"
        ? playerSources.length < maxPlayerSources
        : (kind === "json-ld" ? jsonLd : playlists).length < maxJsonLdBlocks;
    if (isTaken) this.#rawKind = kind;
  }

  #collectMedia(name: string, attributes: Attributes): void {
    if (name === "video" || name === "audio") {
      this.#addPlayer(name, attributes);
      return;
    }
    if (this.#player === null && attributes.has("src")) {
      const isAudio = attributes.get("type")?.startsWith("audio/") === true;
      this.#addPlayer(isAudio ? "audio" : "video", new Map());
      this.#isPlayerImplied = true;
    }
    if (this.#player === null) return;
    const list = name === "source" ? this.#player.sources : this.#player.tracks;
    addBounded(list, attributes, maxSources);
  }

  #addPlayer(kind: Player["kind"], attributes: Attributes): void {
    this.#player = { kind, attributes, sources: [], tracks: [], isAside: this.#asideDepth > 0 };
    this.#isDecoration = null;
    this.#isPlayerImplied = false;
    addBounded(this.#markup.players, this.#player, maxPlayers);
  }
}

function kindOfJson(attributes: Attributes): "json-ld" | "playlist" | "script" {
  if (/^\s*application\/ld\+json\b/i.test(attributes.get("type") ?? "")) return "json-ld";
  return attributes.get("class") === "wp-playlist-script" ? "playlist" : "script";
}

function addMeta(markup: Markup, attributes: Attributes): void {
  const content = attributes.get("content") || attributes.get("value");
  if (content === undefined || content === "") return;
  for (const key of ["property", "name", "http-equiv"]) {
    for (const name of attributes.get(key)?.slice(0, maxNamesLength).toLowerCase().split(/\s+/, maxNames) ?? []) {
      if (name !== "") addBounded(markup.metas, { name, content }, maxMetas);
    }
  }
}

function addLink({ links }: Markup, attributes: Attributes): void {
  const stated = (attributes.get("rel") ?? "").slice(0, maxRelLength).toLowerCase();
  for (const relation of stated.split(/\s+/)) {
    links.getOrInsertComputed(relation, () => []).push(attributes);
  }
}

function addBounded<T>(list: T[], value: T, limit: number): void {
  if (list.length < limit) list.push(value);
}
