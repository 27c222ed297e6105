import { Parser } from "htmlparser2";
import type { Cue } from "../../remux/additions.ts";
import type { MediaRange } from "../../remux/samples.ts";
import { addStyle, changeTags, colorTag, parseColor } from "../colors.ts";
import { createEntityDecoder, localName, readRates, secondsOf } from "./declarations.ts";
import { type Layout, TtmlLayouts } from "./layout.ts";
import { checkCueLength, escapeText, invalidSubtitlesError, lastS } from "../text.ts";

const maxDepth = 64;
/** Of an element: a million take minutes. */
const maxAttributes = 1_000;
const maxStyles = 10_000;
/** What a run of text counts for besides its characters, as it takes memory. */
const runCost = 16;

/** A style of what is not shown (TTML1 §8.2.25). */
const hidden = "hidden";
/** Elements whose text is not shown (TTML1 §12). */
const unshown: ReadonlySet<string> = new Set(["metadata", "title", "desc", "copyright", "agent", "name", "actor"]);

/** Tags of WebVTT for what `tts:ruby` says (TTML2 §10.2.35). */
const rubyTags: ReadonlyMap<string | undefined, string> = new Map([
  ["container", "ruby"],
  ["text", "rt"],
]);

/** An element that is open, with what its children inherit. */
interface OpenElement {
  name: string;
  span: MediaRange;
  isSequence: boolean;
  /** Where its next child begins if it is a sequence. */
  nextS: number;
  styles: Styles;
  layout: Layout;
  keepsSpace: boolean;
  isShown: boolean;
  /** Its tag in WebVTT. */
  ruby: string | undefined;
}

/** Tags of faces that are on and of a colour, and what keeps text from being shown. */
type Styles = ReadonlySet<string>;

/** A part of the text of a paragraph. */
interface Run extends MediaRange {
  payload: string;
}

/**
 * Yields the cues of TTML (W3C TTML1, IMSC1) as text, in the order of the document: what is shown when, with italics, bold, underlines, colours and ruby; where,
 * as cue settings. Takes time linear in its length. What has no end lasts as long as the media. The first piece has all declarations of the document.
 *
 * @throws ServiceError `upstream_invalid` if it nests deeper than 64 levels, has an element with over 1,000 attributes or is cut off, or for more than 2 Mi characters of a cue.
 */
export function* readTtml(pieces: Iterable<string>): Generator<Cue> {
  let reader: TtmlReader | undefined;
  let parser: Parser | undefined;
  for (const piece of pieces) {
    reader ??= new TtmlReader(createEntityDecoder(piece));
    parser ??= new Parser(reader, { xmlMode: true, decodeEntities: false });
    parser.write(piece);
    yield* reader.take();
  }
  reader?.checkClosed();
  parser?.end();
  yield* reader?.end() ?? [];
}

class TtmlReader {
  #cues: Cue[] = [];
  readonly #open: OpenElement[] = [];
  #attributeCount = 0;
  readonly #styles = new Map<string, Styles>();
  readonly #layouts = new TtmlLayouts();
  #rates = readRates(new Map());
  /** Of the paragraph that is open. */
  #runs: Run[] | null = null;
  /** Of these runs, characters. */
  #length = 0;
  /** Text that has not ended yet, as it is written. */
  #written = "";
  #isVerbatim = false;
  #hasCues = false;
  #hasImages = false;
  readonly #decode: (written: string) => string;

  /** @param decode Replaces references in text and attributes. */
  constructor(decode: (written: string) => string) {
    this.#decode = decode;
  }

  /** Returns the cues since it was last called. */
  take(): Cue[] {
    const cues = this.#cues;
    this.#hasCues ||= cues.length > 0;
    this.#cues = [];
    return cues;
  }

  /** @throws ServiceError `upstream_invalid` if an element is open, which the parser closes at its end: the document is cut off. */
  checkClosed(): void {
    if (this.#open.length > 0) throw invalidSubtitlesError("they end within an element, so they are cut off");
  }

  /** Returns the last ones. @throws ServiceError `upstream_invalid` of images (IMSC1 §8, SMPTE ST 2052-1 §5.5) without text */
  end(): Cue[] {
    const cues = this.take();
    if (this.#hasImages && !this.#hasCues) throw invalidSubtitlesError("they are images, and no text");
    return cues;
  }

  onattribute(): void {
    if (++this.#attributeCount > maxAttributes)
      throw invalidSubtitlesError(`an element has more than ${maxAttributes} attributes`);
  }

  onopentag(rawName: string, raw: Record<string, string>): void {
    this.#endText();
    this.#attributeCount = 0;
    if (this.#open.length >= maxDepth) throw invalidSubtitlesError(`they nest deeper than ${maxDepth} levels`);
    const name = localName(rawName);
    const attributes = new Map(Object.entries(raw).map(([key, value]) => [localName(key), this.#decode(value)]));
    if (name === "tt") this.#rates = readRates(attributes);
    const parent = this.#open.at(-1);
    const styles = this.#stylesOf(attributes, parent?.styles ?? new Set());
    const id = attributes.get("id");
    const isImage = attributes.has("backgroundImage") || name === "image";
    this.#hasImages ||= isImage && this.#open.some((element) => element.name === "body");
    if (name === "style" && id !== undefined && this.#styles.size < maxStyles) this.#styles.set(id, styles);
    const layout = this.#layouts.read(name, attributes, parent);
    const space = attributes.get("space");
    const span = this.#spanOf(attributes, parent);
    const isShown =
      parent?.isShown !== false &&
      !unshown.has(name) &&
      attributes.get("display") !== "none" &&
      attributes.get("ruby") !== "delimiter";
    const ruby = isShown && !styles.has(hidden) ? rubyTags.get(attributes.get("ruby")) : undefined;
    this.#open.push({
      name,
      span,
      isSequence: attributes.get("timeContainer") === "seq",
      nextS: span.startS,
      styles,
      layout,
      keepsSpace: space === undefined ? (parent?.keepsSpace ?? false) : space === "preserve",
      isShown,
      ruby,
    });
    if (name === "p") [this.#runs, this.#length] = [[], 0];
    if (ruby !== undefined) this.#add({ ...span, payload: `<${ruby}>` });
    if (name === "br") this.#add({ ...(parent?.span ?? span), payload: "\n" });
  }

  #add(run: Run): void {
    if (this.#runs === null) return;
    this.#runs.push(run);
    this.#length += run.payload.length + runCost;
    checkCueLength(this.#length);
  }

  ontext(written: string): void {
    const parent = this.#open.at(-1);
    if (this.#runs === null || parent?.isShown !== true || parent.styles.has(hidden)) return;
    this.#written += written;
    checkCueLength(this.#length + this.#written.length);
  }

  oncdatastart(): void {
    this.#endText();
    this.#isVerbatim = true;
  }

  oncdataend(): void {
    this.#endText();
    this.#isVerbatim = false;
  }

  #endText(): void {
    const parent = this.#open.at(-1);
    if (this.#written === "" || parent === undefined) return;
    const text = this.#isVerbatim ? this.#written : this.#decode(this.#written);
    this.#written = "";
    const shown = parent.keepsSpace ? text : text.replaceAll(/[ \t\r\n]+/g, " ");
    if (shown === "") return;
    const tags = [...parent.styles];
    const marked = `${changeTags([], tags)}${escapeText(shown)}${changeTags(tags, [])}`;
    const payload = shown.trim() === "" ? shown : marked;
    this.#add({ ...parent.span, payload });
  }

  onclosetag(): void {
    this.#endText();
    const closed = this.#open.pop();
    const parent = this.#open.at(-1);
    if (closed === undefined) return;
    if (closed.ruby !== undefined) this.#add({ ...closed.span, payload: `</${closed.ruby}>` });
    if (parent?.isSequence === true) parent.nextS = Math.max(parent.nextS, closed.span.endS);
    if (closed.name === "p") this.#closeParagraph(closed.layout);
  }

  /** Runs of the same time are one cue. */
  #closeParagraph(layout: Layout): void {
    const byTime = Map.groupBy(this.#runs ?? [], ({ startS, endS }) => `${startS} ${endS}`);
    this.#runs = null;
    for (const runs of byTime.values()) {
      const startS = runs[0]!.startS;
      const endS = Math.min(runs[0]!.endS, lastS);
      const text = runs.map(({ payload }) => payload).join("");
      const written = text.split("\n").map((line) => line.trim());
      const lines = written.filter((line) => line !== "");
      const settings = this.#layouts.settingsOf(layout, lines.length);
      if (endS > startS && lines.length > 0) this.#cues.push({ startS, endS, text: lines.join("\n"), settings });
    }
  }

  /** Times count from the start of the parent, or in a sequence from the end of the sibling before (TTML1 §10). */
  #spanOf(attributes: ReadonlyMap<string, string>, parent: OpenElement | undefined): MediaRange {
    const outer = parent?.span ?? { startS: 0, endS: Infinity };
    const referenceS = parent?.isSequence === true ? parent.nextS : outer.startS;
    const [begin, end, duration] = ["begin", "end", "dur"].map((name) => secondsOf(attributes.get(name), this.#rates));
    const startS = referenceS + (begin ?? 0);
    const implicitS = parent?.isSequence === true && end == null && duration == null ? startS : outer.endS;
    const endS = Math.min(
      end == null ? Infinity : referenceS + end,
      duration == null ? Infinity : startS + duration,
      implicitS,
    );
    return { startS, endS: Math.min(endS, outer.endS) };
  }

  #stylesOf(attributes: ReadonlyMap<string, string>, inherited: Styles): Styles {
    const styles = new Set(inherited);
    const set = (face: string, isOn: boolean) => void (isOn ? styles.add(face) : styles.delete(face));
    const referred = attributes.get("style")?.trim().split(/\s+/, 20) ?? [];
    for (const id of referred) for (const style of this.#styles.get(id) ?? []) addStyle(styles, style);
    const [fontStyle, fontWeight, decoration] = ["fontStyle", "fontWeight", "textDecoration"].map((name) =>
      attributes.get(name),
    );
    if (fontStyle !== undefined) set("i", fontStyle === "italic" || fontStyle === "oblique");
    if (fontWeight !== undefined) set("b", fontWeight === "bold");
    const visibility = attributes.get("visibility");
    const color = parseColor(attributes.get("color") ?? "");
    if (color !== undefined) addStyle(styles, colorTag(color));
    if (visibility !== undefined) set(hidden, visibility === "hidden");
    if (decoration !== undefined) set("u", decoration.split(/\s+/, 5).includes("underline"));
    return styles;
  }
}
