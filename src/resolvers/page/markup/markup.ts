import { decodeHTML } from "entities";
import type { TimeSlices } from "../../../parsers/steps.ts";
import { type Attributes, parseAttributes } from "./attributes.ts";
import { HtmlScanner, type HtmlSink, type StartTag } from "./html.ts";
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

const maxMetas = 2_000;
const maxLinks = 500;
const maxJsonLdBlocks = 100;
/** Longer blocks are ignored, UTF-16 code units: JSON cannot be parsed in steps. */
const maxJsonLdLength = 256 * 1024;
const maxTitleSource = 10_000;
const maxPlayers = 20;
const maxSources = 50;
const maxFrames = 50;

const elements = new Set(
  "html base title meta link script video audio source track iframe".split(" "),
);

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

/** An open `<title>` or JSON-LD block. */
interface Capture {
  chunks: string[];
  /** How much more text is kept, UTF-16 code units; negative: too long. */
  remaining: number;
  isTitle: boolean;
}

class MarkupCollector implements HtmlSink {
  readonly elements = elements;
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
    items: this.#microdata.items,
  };
  #player: Player | null = null;
  #capture: Capture | null = null;

  open({ name, source, hasMicrodata, isForeign }: StartTag): boolean {
    this.#finishCapture();
    const isKnown = elements.has(name) && (name !== "script" || /json/i.test(source));
    const attributes = isKnown || hasMicrodata ? parseAttributes(source) : null;
    if (isKnown && attributes !== null) this.#collect(name, attributes, isForeign);
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
    else if (name === "script") this.#collectScript(attributes);
    else if (name === "iframe") addBounded(markup.frames, attributes, maxFrames);
    else if (name === "html")
      markup.language ??= attributes.get("lang") || attributes.get("xml:lang") || null;
    else if (name === "base") markup.base ??= attributes.get("href") ?? null;
    else if (name === "title") {
      if (markup.title === null && !isForeign)
        this.#capture = { chunks: [], remaining: maxTitleSource, isTitle: true };
    } else this.#collectMedia(name, attributes);
  }

  #collectScript(attributes: Attributes): void {
    if (!isJsonLd(attributes) || this.#markup.jsonLd.length === maxJsonLdBlocks) return;
    this.#capture = { chunks: [], remaining: maxJsonLdLength, isTitle: false };
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

  /** Ends a title or JSON-LD block: its raw text ends with the next tag. */
  #finishCapture(): void {
    if (this.#capture === null) return;
    const { chunks, remaining, isTitle } = this.#capture;
    this.#capture = null;
    if (isTitle) this.#markup.title = decodeHTML(chunks.join(""));
    else if (remaining >= 0) this.#markup.jsonLd.push(chunks.join(""));
  }
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
