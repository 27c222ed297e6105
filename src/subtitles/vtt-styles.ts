import { colorClasses, parseColor } from "./colors.ts";

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
