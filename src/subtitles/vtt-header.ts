import { colorClasses, parseColor } from "./colors.ts";
import { settingsIn, type TextArea } from "./placement.ts";

/** Of all blocks of styles together. */
const maxStyleLength = 64 << 10;
const maxClasses = 1_000;

const selector = /^::cue\(\s{0,9}[a-z]{0,9}\.([\w-]{1,100})\s{0,9}\)$/i;
const color = /(?:^|;)\s{0,99}color\s{0,9}:([^;!]{1,100})/i;
const classesOfTag = /<([a-z]{1,9})((?:\.[^\s.<>]+)+)/gi;

/** Reads the colours of classes that a WebVTT file states (W3C WebVTT §7.1), and of those that are colours. Other styles are left out. */
export function createVttStyles() {
  const colors = new Map<string, string>(colorClasses.map((name) => [name, parseColor(name)!]));
  let open: string | null = null;
  let length = 0;
  return {
    /** Reads a line that belongs to no cue; an empty one ends a block of styles. */
    readLine(line: string): void {
      if (open === null) {
        if (/^STYLE[ \t]*$/.test(line)) open = "";
      } else if (line === "") {
        for (const [name, digits] of colorsIn(open)) if (colors.size < maxClasses) colors.set(name, digits);
        open = null;
      } else if ((length += line.length) < maxStyleLength) open += `${line}\n`;
    },
    /** Returns a payload whose tags have a class that names their colour (`colorTag`), too. */
    replaceIn(payload: string): string {
      return payload.replaceAll(classesOfTag, (tag, _name, classes: string) => {
        const found = classes.split(".").findLast((name) => colors.has(name));
        return found === undefined ? tag : `${tag}.color${colors.get(found)}`;
      });
    },
  };
}

function* colorsIn(styles: string): Generator<readonly [string, string]> {
  for (const rule of withoutComments(styles).split("}")) {
    const [selectors = "", declarations = ""] = rule.split("{");
    const digits = parseColor(color.exec(declarations)?.[1] ?? "");
    if (digits === undefined) continue;
    for (const each of selectors.split(",")) {
      const [, name] = selector.exec(each.trim()) ?? [];
      if (name !== undefined) yield [name, digits];
    }
  }
}

function withoutComments(styles: string): string {
  const [start = "", ...rest] = styles.split("/*");
  return [start, ...rest.map((text) => (text.includes("*/") ? text.slice(text.indexOf("*/") + 2) : ""))].join("");
}

const maxRegions = 1_000;

/** Height of a line of a region, percent of the picture (W3C WebVTT §7.2: 5.33vh). */
const lineHeight = 5.33;

/** Whose cues are where players put text anyway (W3C WebVTT §6.2). */
const defaultRegion: ReadonlyMap<string, string> = new Map([
  ["width", "100%"],
  ["lines", "3"],
  ["regionanchor", "0%,100%"],
  ["viewportanchor", "0%,100%"],
]);

/** Reads the regions of a WebVTT file, which few players know: their cues get settings of their own instead. */
export function createVttRegions() {
  const areas = new Map<string, TextArea>();
  let open: Map<string, string> | null = null;
  return {
    /** Reads a line that belongs to no cue; an empty one ends a region. */
    readLine(line: string): void {
      if (line === "" && open !== null) {
        const area = areaOf(open);
        if (area !== null && areas.size < maxRegions) areas.set(open.get("id") ?? "", area);
        open = null;
      } else if (/^REGION[ \t]*$/.test(line)) open = new Map(defaultRegion);
      else if (open !== null) {
        for (const setting of line.split(/[ \t]+/, 100)) {
          const colon = setting.indexOf(":");
          if (colon > 0) open.set(setting.slice(0, colon), setting.slice(colon + 1));
        }
      }
    },
    /** Returns settings of a cue, those of its region instead of the region's name. */
    replaceIn(settings: string, payload: string): string {
      if (!settings.includes("region:")) return settings;
      const stated = settings.split(/[ \t]+/, 100);
      const id = stated.find((setting) => setting.startsWith("region:"))?.slice("region:".length) ?? "";
      const own = stated.filter((setting) => !setting.startsWith("region:"));
      const area = areas.get(id);
      // These count more than the region (§6.3).
      const isPlaced = own.some((setting) => /^(?:line|vertical):/.test(setting));
      if (area === undefined || isPlaced) return own.join(" ");
      const names = new Set(own.map(nameOf));
      const added = settingsIn(area, payload.split("\n").length).filter((setting) => !names.has(nameOf(setting)));
      return [...added, ...own].join(" ");
    },
  };
}

const nameOf = (setting: string): string => setting.split(":", 1)[0]!;

/** Returns `null` if its settings are none, or it is not in the picture. */
function areaOf(settings: ReadonlyMap<string, string>): TextArea | null {
  const width = percentOf(settings.get("width"));
  const [anchorX, anchorY] = percentsOf(settings.get("regionanchor"));
  const [x, y] = percentsOf(settings.get("viewportanchor"));
  const lines = /^\d{1,3}$/.test(settings.get("lines") ?? "") ? Number(settings.get("lines")) : NaN;
  const height = Math.min(100, lines * lineHeight);
  const left = Math.max(0, x - (anchorX / 100) * width);
  const top = Math.max(0, y - (anchorY / 100) * height);
  const area = { left, top, width: Math.min(width, 100 - left), height: Math.min(height, 100 - top) };
  const isVisible = area.width > 0 && area.height > 0;
  return isVisible ? { ...area, lines: "bottom", align: "center" } : null;
}

const percentsOf = (text: string | undefined): [number, number] => {
  const [x, y] = text?.split(",", 3) ?? [];
  return [percentOf(x), percentOf(y)];
};

function percentOf(text: string | undefined): number {
  const percent = Number(/^(\d{1,3}(?:\.\d{1,9})?)%$/.exec(text ?? "")?.[1] ?? NaN);
  return percent <= 100 ? percent : NaN;
}
