import { isCentered, settingsIn, type TextArea } from "../placement.ts";

/** What places text, by the names of attributes (TTML2 §10.2); `region` is the id of one. */
export type Layout = Map<string, string>;
type Attributes = ReadonlyMap<string, string>;

const inherited = ["textAlign", "direction", "region"];
const placing = [...inherited, "origin", "position", "extent", "displayAlign", "writingMode"];
const placeNames = ["origin", "position", "extent", "displayAlign"];

/** By `displayAlign`; any other value is as `before`, its default. */
const linesOf: ReadonlyMap<string | undefined, TextArea["lines"]> = new Map([
  ["center", "middle"],
  ["after", "bottom"],
]);

const maxLayouts = 10_000;

/** Reads where a document of TTML puts its text. */
export class TtmlLayouts {
  readonly #styles = new Map<string, Layout>();
  readonly #regions = new Map<string, Layout>();
  #units: Units = unitsOf(new Map());

  /** Returns the layout of an element, given its parent. */
  read(name: string, attributes: Attributes, parent: { name: string; layout: Layout } | undefined): Layout {
    if (name === "tt") this.#units = unitsOf(attributes);
    const isDeclared = name === "style" || name === "region";
    const names = isDeclared ? placing : inherited;
    const isSame = !attributes.has("style") && !names.some((each) => attributes.has(each));
    if (!isDeclared && isSame && parent !== undefined) return parent.layout;
    const layout: Layout = new Map();
    const add = (from: Attributes | undefined) => {
      for (const each of names) if (from?.has(each) === true) layout.set(each, from.get(each)!);
    };
    if (!isDeclared) add(parent?.layout);
    for (const id of attributes.get("style")?.trim().split(/\s+/, 20) ?? []) add(this.#styles.get(id));
    add(attributes);
    const id = attributes.get("id");
    const declared = name === "style" ? this.#styles : this.#regions;
    if (isDeclared && id !== undefined && declared.size < maxLayouts) declared.set(id, layout);
    if (name === "style" && parent?.name === "region") addMissing(parent.layout, layout);
    return layout;
  }

  /**
   * Returns the WebVTT cue settings of text of `lineCount` lines with this layout; none if it has no region, or the region is not
   * in the picture or does not say where it is: then players put text at the bottom.
   */
  settingsOf(layout: Layout, lineCount: number): string {
    const region = this.#regions.get(layout.get("region") ?? "");
    if (region === undefined || !placeNames.some((name) => region.has(name))) return "";
    const all = new Map([...region, ...layout]);
    const area = this.#areaOf(all);
    if (area === null) return "";
    const mode = region.get("writingMode") ?? "";
    return (mode.startsWith("tb") ? verticalSettings(area, mode) : settingsIn(area, lineCount)).join(" ");
  }

  #areaOf(layout: Layout): TextArea | null {
    const extent = this.#lengthsOf(layout.get("extent"), [100, 100]);
    const origin = extent && this.#originOf(layout, extent);
    if (extent === null || origin === null) return null;
    const [left, top] = origin;
    const [width, height] = [Math.min(extent[0], 100 - left), Math.min(extent[1], 100 - top)];
    if (width <= 0 || height <= 0) return null;
    const lines = linesOf.get(layout.get("displayAlign")) ?? "top";
    const area = { left, top, width, height, lines };
    return { ...area, align: alignOf(layout) ?? (isCentered(area) ? "center" : "left") };
  }

  #originOf(layout: Layout, extent: Pair): Pair | null {
    const position = layout.get("position");
    if (position === undefined) return this.#lengthsOf(layout.get("origin"), [0, 0]);
    const shares = sharesOf(position);
    return shares && [(shares[0] / 100) * (100 - extent[0]), (shares[1] / 100) * (100 - extent[1])];
  }

  /** Returns two lengths in percent of the picture; `null` if one is none, or not within it. */
  #lengthsOf(text: string | undefined, auto: Pair): Pair | null {
    if (text === undefined || text.trim() === "auto") return auto;
    const [horizontal, vertical] = text.trim().split(/\s+/, 3);
    const lengths = [horizontal, vertical].map((written, axis) => {
      const [, count, unit = ""] = /^\+?(\d{1,6}(?:\.\d{1,9})?)(%|px|c|rw|rh)$/.exec(written ?? "") ?? [];
      return count === undefined ? NaN : Number(count) * (this.#units[unit]?.[axis] ?? NaN);
    });
    return lengths.every((length) => length <= maxPercent) ? [lengths[0]!, lengths[1]!] : null;
  }
}

function addMissing(to: Layout, from: Layout): void {
  for (const [name, value] of from) if (!to.has(name)) to.set(name, value);
}

/** Returns the settings of columns: they are at the end of the picture to which they are nearer. */
function verticalSettings({ left, width, lines }: TextArea, mode: string): string[] {
  const isFromRight = mode !== "tblr";
  const share = { top: 0, middle: 0.5, bottom: 1 }[lines];
  const columnsAt = left + (isFromRight ? 1 - share : share) * width;
  const isFirst = isFromRight === columnsAt > 50;
  return [`vertical:${isFromRight ? "rl" : "lr"}`, ...(isFirst ? ["line:0"] : []), "align:start"];
}

type Pair = readonly [number, number];
/** What a unit is horizontally and vertically, percent of the picture. */
type Units = Readonly<Record<string, Pair>>;

/** Encoders round. */
const maxPercent = 101;

function unitsOf(attributes: Attributes): Units {
  const [, width, height] = /^\s*(\d{1,6})px\s+(\d{1,6})px\s*$/.exec(attributes.get("extent") ?? "") ?? [];
  const [, columns = "32", rows = "15"] =
    /^\s*(\d{1,6})\s+(\d{1,6})\s*$/.exec(attributes.get("cellResolution") ?? "") ?? [];
  return {
    "%": [1, 1],
    px: [100 / Number(width), 100 / Number(height)],
    c: [100 / Number(columns), 100 / Number(rows)],
    rw: [1, NaN],
    rh: [NaN, 1],
  };
}

/**
 * Returns how much of the space that an area leaves free is before it, across and down, percent (TTML2 §10.3.22); `null` if the
 * position has more than two components.
 */
function sharesOf(position: string): Pair | null {
  const words = position.trim().split(/\s+/, 3);
  const isTurned = /^(?:top|bottom)$/.test(words[0] ?? "") || /^(?:left|right)$/.test(words[1] ?? "");
  const [horizontal = "center", vertical = "center"] = isTurned ? [words[1], words[0]] : words;
  const named: Readonly<Record<string, number>> = { left: 0, top: 0, center: 50, right: 100, bottom: 100 };
  const share = (word: string) => named[word] ?? Number(/^(\d{1,3}(?:\.\d{1,9})?)%$/.exec(word)?.[1] ?? NaN);
  const shares = [share(horizontal), share(vertical)] as const;
  return words.length <= 2 && shares.every((each) => each <= 100) ? shares : null;
}

function alignOf(layout: Attributes): TextArea["align"] | undefined {
  const isFromRight = layout.get("direction") === "rtl" || layout.get("writingMode")?.startsWith("rl") === true;
  const [start, end] = isFromRight ? (["right", "left"] as const) : (["left", "right"] as const);
  const stated = layout.get("textAlign");
  if (stated === "start") return start;
  if (stated === "end") return end;
  return (["left", "center", "right"] as const).find((align) => align === stated);
}
