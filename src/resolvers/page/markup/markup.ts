import { decodeHTML } from "entities";
import type { TimeSlices } from "../../../parsers/steps.ts";
import { type Attributes, parseAttributes } from "./attributes.ts";
import { HtmlScanner } from "./html.ts";
import type { HtmlSink, StartTag } from "./html-sink.ts";
import { maxNameLength, mayNameMedium } from "./media-names.ts";
import { MicrodataReader } from "./microdata.ts";
import type { Thing } from "./thing.ts";

/** The parts of a page that may state metadata, as written: neither resolved nor trimmed. */
export interface Markup {
  language: string | null;
  base: string | null;
  title: string | null;
  /** In page order; `name` is each of `property`, `name` and `http-equiv`, in lower case. */
  metas: { name: string; content: string }[];
  links: Attributes[];
  /** Sources of the JSON-LD blocks. */
  jsonLd: string[];
  players: Player[];
  frames: Attributes[];
  /** The scripts and tags that may name a medium, in page order. */
  playerSources: PlayerSource[];
  /** The top-level microdata items. */
  items: readonly Thing[];
}

/** A `<video>` or `<audio>` with its `<source>` and `<track>` elements. */
export interface Player {
  kind: "video" | "audio";
  attributes: Attributes;
  sources: Attributes[];
  tracks: Attributes[];
}

/** A script's text, or a tag. */
export type PlayerSource = { script: string } | { name: string; attributes: Attributes };

const maxMetas = 2_000;
const maxLinks = 500;
const maxJsonLdBlocks = 100;
/** Longer blocks are ignored, UTF-16 code units: JSON cannot be parsed in steps. */
const maxJsonLdLength = 256 * 1024;
const maxTitleSource = 10_000;
const maxPlayers = 20;
const maxSources = 50;
/** Of an attribute that may hold a player's data; UTF-16 code units. */
const maxDataLength = 256 * 1024;
const maxFrames = 50;
const maxPlayerSources = 500;

const elements = new Set(
  "html base title meta link script video audio source track iframe".split(" "),
);

/** Those that may hold a player's data whatever the names of their attributes are. */
const dataElements = new Set("a embed input param".split(" "));
const reported = new Set([...elements, ...dataElements]);

/** Reads a page to its end. Rejects only with the errors of `chunks` and `signal.reason`. */
export async function readMarkup(
  chunks: AsyncIterable<string>,
  slices: TimeSlices,
  signal: AbortSignal,
): Promise<Markup> {
  const collector = new MarkupCollector();
  const scanner = new HtmlScanner(collector);
  for await (const chunk of chunks) await slices.run(scanner.write(chunk), signal);
  await slices.run(scanner.end(), signal);
  return collector.end();
}

/** An open `<title>`, JSON-LD block or other script. */
interface Capture {
  kind: "title" | "json-ld" | "script";
  chunks: string[];
  /** How much more text is kept, UTF-16 code units; negative: too long. */
  remaining: number;
  /** A script that may name a medium. */
  isNamed: boolean;
}

class MarkupCollector implements HtmlSink {
  readonly elements = reported;
  wantsAllTags = false;
  wantsText = false;
  readonly #microdata = new MicrodataReader();
  readonly #markup: Markup = {
    language: null,
    base: null,
    title: null,
    metas: [],
    links: [],
    jsonLd: [],
    players: [],
    frames: [],
    playerSources: [],
    items: this.#microdata.items,
  };
  #player: Player | null = null;
  #capture: Capture | null = null;

  open({ name, source, hasMicrodata, mayHoldData, isForeign }: StartTag): boolean {
    this.#finishCapture();
    if (mayHoldData || dataElements.has(name)) this.#collectData(name, source);
    const isJson = name === "script" && /json/i.test(source);
    const isKnown = elements.has(name) && (name !== "script" || isJson);
    const attributes = isKnown || hasMicrodata ? parseAttributes(source) : null;
    if (name === "script") this.#collectScript(isJson ? attributes : null);
    else if (isKnown && attributes !== null) this.#collect(name, attributes, isForeign);
    if (hasMicrodata || this.wantsAllTags) {
      this.#microdata.open(name, hasMicrodata ? attributes : null);
      this.#update();
    }
    return this.#capture !== null;
  }

  close(name: string): void {
    this.#finishCapture();
    if (name === "video" || name === "audio") this.#player = null;
    if (!this.wantsAllTags) return;
    this.#microdata.close(name);
    this.#update();
  }

  text(chunk: string): void {
    const capture = this.#capture;
    if (capture === null) this.#microdata.text(chunk);
    else if (capture.kind === "script") addToScript(capture, chunk);
    else {
      if (capture.remaining > 0) capture.chunks.push(chunk.slice(0, capture.remaining));
      capture.remaining -= chunk.length;
    }
  }

  /** Closes what is still open and returns the result. */
  end(): Markup {
    this.#finishCapture();
    this.#microdata.end();
    return this.#markup;
  }

  #update(): void {
    this.wantsAllTags = this.#microdata.isInItem;
    this.wantsText = this.#microdata.wantsText;
  }

  #collect(name: string, attributes: Attributes, isForeign: boolean): void {
    const markup = this.#markup;
    if (name === "meta") addMeta(markup, attributes);
    else if (name === "link") addBounded(markup.links, attributes, maxLinks);
    else if (name === "iframe") addBounded(markup.frames, attributes, maxFrames);
    else if (name === "html")
      markup.language ??= attributes.get("lang") || attributes.get("xml:lang") || null;
    else if (name === "base") markup.base ??= attributes.get("href") ?? null;
    else if (name === "title") {
      if (markup.title === null && !isForeign)
        this.#capture = createCapture("title", maxTitleSource);
    } else this.#collectMedia(name, attributes);
  }

  #collectScript(attributes: Attributes | null): void {
    const { jsonLd, playerSources } = this.#markup;
    if (attributes === null || !isJsonLd(attributes)) {
      if (playerSources.length < maxPlayerSources)
        this.#capture = createCapture("script", Infinity);
    } else if (jsonLd.length < maxJsonLdBlocks) {
      this.#capture = createCapture("json-ld", maxJsonLdLength);
    }
  }

  #collectData(name: string, source: string): void {
    if (!mayNameMedium(source)) return;
    const attributes = parseAttributes(source, maxDataLength);
    addBounded(this.#markup.playerSources, { name, attributes }, maxPlayerSources);
  }

  #collectMedia(name: string, attributes: Attributes): void {
    if (name === "video" || name === "audio") {
      this.#player = { kind: name, attributes, sources: [], tracks: [] };
      addBounded(this.#markup.players, this.#player, maxPlayers);
    } else if (this.#player !== null) {
      const list = name === "source" ? this.#player.sources : this.#player.tracks;
      addBounded(list, attributes, maxSources);
    }
  }

  /** Ends a title or script: its raw text ends with the next tag. */
  #finishCapture(): void {
    if (this.#capture === null) return;
    const { kind, chunks, remaining, isNamed } = this.#capture;
    this.#capture = null;
    if (kind === "title") this.#markup.title = decodeHTML(chunks.join(""));
    else if (kind === "json-ld" && remaining >= 0) this.#markup.jsonLd.push(chunks.join(""));
    else if (isNamed) this.#markup.playerSources.push({ script: chunks.join("") });
  }
}

function createCapture(kind: Capture["kind"], remaining: number): Capture {
  return { kind, chunks: [], remaining, isNamed: false };
}

function addToScript(capture: Capture, chunk: string): void {
  const { chunks } = capture;
  capture.isNamed ||= mayNameMedium(chunk) || mayNameMedium(seam(chunks.at(-1), chunk));
  chunks.push(chunk);
}

/** Returns the text around the place where two chunks meet. */
function seam(before: string | undefined, after: string): string {
  return before === undefined ? "" : before.slice(-maxNameLength) + after.slice(0, maxNameLength);
}

function isJsonLd(attributes: Attributes): boolean {
  return /^\s*application\/ld\+json\b/i.test(attributes.get("type") ?? "");
}

function addMeta(markup: Markup, attributes: Attributes): void {
  const content = attributes.get("content") || attributes.get("value");
  if (content === undefined || content === "") return;
  for (const key of ["property", "name", "http-equiv"]) {
    for (const name of (attributes.get(key) ?? "").toLowerCase().split(/\s+/)) {
      if (name !== "") addBounded(markup.metas, { name, content }, maxMetas);
    }
  }
}

function addBounded<T>(list: T[], value: T, limit: number): void {
  if (list.length < limit) list.push(value);
}
