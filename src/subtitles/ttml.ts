import { Parser } from "htmlparser2";
import type { Cue } from "../remux/additions.ts";
import { createEntityDecoder } from "./entities.ts";
import { checkCueLength, escapeText, invalidSubtitlesError, lastS } from "./text.ts";

const maxDepth = 64;
const maxStyles = 10_000;
/** What a run of text counts for besides its characters, as it takes memory. */
const runCost = 16;

/** Elements whose text is not shown (TTML1 §12). */
const unshown: ReadonlySet<string> = new Set(["metadata", "title", "desc", "copyright", "agent", "name", "actor"]);

interface Span {
  startS: number;
  endS: number;
}

/** An element that is open, with what its children inherit. */
interface OpenElement {
  name: string;
  span: Span;
  isSequence: boolean;
  /** Where its next child begins if it is a sequence. */
  nextS: number;
  styles: Styles;
  keepsSpace: boolean;
  isShown: boolean;
}

/** Names of faces that are on. */
type Styles = ReadonlySet<string>;

/** A part of the text of a paragraph. */
interface Run extends Span {
  payload: string;
}

/**
 * Yields the cues of TTML (W3C TTML1, IMSC1) as text, in the order of the document: what is shown when, with italics, bold and underlines; not where.
 * Takes time linear in its length. What has no end lasts as long as the media. The first piece has all declarations of the document.
 *
 * @throws ServiceError `upstream_invalid` if it nests deeper than 64 levels, or for more than 2 Mi characters of a cue.
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
  parser?.end();
  yield* reader?.take() ?? [];
}

class TtmlReader {
  #cues: Cue[] = [];
  readonly #open: OpenElement[] = [];
  readonly #styles = new Map<string, Styles>();
  #timing = { frameRate: 30, tickRate: 1, subFrames: 1 };
  /** Of the paragraph that is open. */
  #runs: Run[] | null = null;
  /** Of these runs, characters. */
  #length = 0;
  /** Text that has not ended yet, as it is written. */
  #written = "";
  #isVerbatim = false;
  readonly #decode: (written: string) => string;

  /** @param decode Replaces references in text and attributes. */
  constructor(decode: (written: string) => string) {
    this.#decode = decode;
  }

  /** Returns the cues since it was last called. */
  take(): Cue[] {
    const cues = this.#cues;
    this.#cues = [];
    return cues;
  }

  onopentag(rawName: string, raw: Record<string, string>): void {
    this.#endText();
    if (this.#open.length >= maxDepth) throw invalidSubtitlesError(`they nest deeper than ${maxDepth} levels`);
    const name = localName(rawName);
    const attributes = new Map(Object.entries(raw).map(([key, value]) => [localName(key), this.#decode(value)]));
    if (name === "tt") this.#readRates(attributes);
    const parent = this.#open.at(-1);
    const styles = this.#stylesOf(attributes, parent?.styles ?? new Set());
    const id = attributes.get("id");
    if (name === "style" && id !== undefined && this.#styles.size < maxStyles) this.#styles.set(id, styles);
    const space = attributes.get("space");
    const span = this.#spanOf(attributes, parent);
    this.#open.push({
      name,
      span,
      isSequence: attributes.get("timeContainer") === "seq",
      nextS: span.startS,
      styles,
      keepsSpace: space === undefined ? (parent?.keepsSpace ?? false) : space === "preserve",
      isShown: parent?.isShown !== false && !unshown.has(name),
    });
    if (name === "p") [this.#runs, this.#length] = [[], 0];
    if (name === "br") this.#add({ ...(parent?.span ?? span), payload: "\n" });
  }

  #add(run: Run): void {
    if (this.#runs === null) return;
    this.#runs.push(run);
    this.#length += run.payload.length + runCost;
    checkCueLength(this.#length);
  }

  ontext(written: string): void {
    if (this.#runs === null || this.#open.at(-1)?.isShown !== true) return;
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
    const faces = [...parent.styles];
    const tags = faces.map((face) => `<${face}>`).join("");
    const ends = faces
      .toReversed()
      .map((face) => `</${face}>`)
      .join("");
    const payload = shown.trim() === "" ? shown : `${tags}${escapeText(shown)}${ends}`;
    this.#add({ ...parent.span, payload });
  }

  onclosetag(): void {
    this.#endText();
    const closed = this.#open.pop();
    const parent = this.#open.at(-1);
    if (closed === undefined) return;
    if (parent?.isSequence === true) parent.nextS = Math.max(parent.nextS, closed.span.endS);
    if (closed.name === "p") this.#closeParagraph();
  }

  /** Runs of the same time are one cue. */
  #closeParagraph(): void {
    const byTime = Map.groupBy(this.#runs ?? [], ({ startS, endS }) => `${startS} ${endS}`);
    this.#runs = null;
    for (const runs of byTime.values()) {
      const startS = runs[0]!.startS;
      const endS = Math.min(runs[0]!.endS, lastS);
      const text = runs.map(({ payload }) => payload).join("");
      const lines = text.split("\n").map((line) => line.trim());
      const payload = lines.filter((line) => line !== "").join("\n");
      if (endS > startS && payload !== "") this.#cues.push({ startS, endS, text: payload, settings: "" });
    }
  }

  #readRates(attributes: ReadonlyMap<string, string>): void {
    const number = (name: string) => {
      const value = Number(attributes.get(name));
      return value > 0 && Number.isFinite(value) ? value : null;
    };
    const [numerator = 1, denominator = 1] = (attributes.get("frameRateMultiplier") ?? "1 1")
      .trim()
      .split(/[\s:]+/, 2)
      .map(Number);
    const ratio = numerator / denominator;
    const frameRate = (number("frameRate") ?? 30) * (ratio > 0 && Number.isFinite(ratio) ? ratio : 1);
    const subFrames = number("subFrameRate") ?? 1;
    const tickRate = number("tickRate") ?? (attributes.has("frameRate") ? frameRate * subFrames : 1);
    this.#timing = { frameRate, subFrames, tickRate };
  }

  /** Times count from the start of the parent, or in a sequence from the end of the sibling before (TTML1 §10). */
  #spanOf(attributes: ReadonlyMap<string, string>, parent: OpenElement | undefined): Span {
    const outer = parent?.span ?? { startS: 0, endS: Infinity };
    const referenceS = parent?.isSequence === true ? parent.nextS : outer.startS;
    const [begin, end, duration] = ["begin", "end", "dur"].map((name) => this.#timeOf(attributes.get(name)));
    const startS = referenceS + (begin ?? 0);
    const implicitS = parent?.isSequence === true && end == null && duration == null ? startS : outer.endS;
    const endS = Math.min(
      end == null ? Infinity : referenceS + end,
      duration == null ? Infinity : startS + duration,
      implicitS,
    );
    return { startS, endS: Math.min(endS, outer.endS) };
  }

  #timeOf(text: string | undefined): number | null {
    if (text === undefined) return null;
    const stated = text.trim().slice(0, 100);
    const { frameRate, subFrames, tickRate } = this.#timing;
    const clock = /^(\d{1,6}):(\d{2}):(\d{2})(?:\.(\d{1,20})|:(\d{1,6})(?:\.(\d{1,6}))?)?$/.exec(stated);
    if (clock !== null) {
      const [, hours, minutes, seconds, fraction = "0", frames = "0", subFrame = "0"] = clock;
      const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
      return whole + Number(`0.${fraction}`) + (Number(frames) + Number(subFrame) / subFrames) / frameRate;
    }
    const [, count, unit = ""] = /^(\d{1,20}(?:\.\d{1,20})?)(h|m|s|ms|f|t)$/.exec(stated) ?? [];
    const units: Readonly<Record<string, number>> = {
      h: 3600,
      m: 60,
      s: 1,
      ms: 0.001,
      f: 1 / frameRate,
      t: 1 / tickRate,
    };
    return count === undefined ? null : Number(count) * (units[unit] ?? 1);
  }

  #stylesOf(attributes: ReadonlyMap<string, string>, inherited: Styles): Styles {
    const styles = new Set(inherited);
    const set = (face: string, isOn: boolean) => void (isOn ? styles.add(face) : styles.delete(face));
    const referred = attributes.get("style")?.trim().split(/\s+/, 20) ?? [];
    for (const id of referred) for (const face of this.#styles.get(id) ?? []) styles.add(face);
    const [fontStyle, fontWeight, decoration] = ["fontStyle", "fontWeight", "textDecoration"].map((name) =>
      attributes.get(name),
    );
    if (fontStyle !== undefined) set("i", fontStyle === "italic" || fontStyle === "oblique");
    if (fontWeight !== undefined) set("b", fontWeight === "bold");
    if (decoration !== undefined) set("u", decoration.split(/\s+/, 5).includes("underline"));
    return styles;
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}
