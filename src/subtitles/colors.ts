/** Colours of CSS (CSS Color §6.1) that subtitles name. */
const named: ReadonlyMap<string, string> = new Map(
  Object.entries({
    white: "ffffff",
    silver: "c0c0c0",
    gray: "808080",
    grey: "808080",
    black: "000000",
    red: "ff0000",
    maroon: "800000",
    orange: "ffa500",
    yellow: "ffff00",
    olive: "808000",
    lime: "00ff00",
    green: "008000",
    aqua: "00ffff",
    cyan: "00ffff",
    teal: "008080",
    blue: "0000ff",
    navy: "000080",
    fuchsia: "ff00ff",
    magenta: "ff00ff",
    purple: "800080",
    pink: "ffc0cb",
  }),
);

/** Classes of WebVTT that are colours by themselves (W3C WebVTT §5.1). */
export const colorClasses = ["white", "lime", "cyan", "red", "yellow", "magenta", "blue", "black"] as const;

/**
 * Returns the six digits of a colour: `#f00`, `#ff0000`, `rgb(255, 0, 0)`, each also with an opacity, which is left out, or a common
 * name; undefined: it is none of these.
 */
export function parseColor(stated: string): string | undefined {
  const text = stated.trim().toLowerCase();
  const [, digits] = /^#([\da-f]{3,8})$/.exec(text) ?? [];
  if (digits?.length === 3 || digits?.length === 4) return digits.slice(0, 3).replaceAll(/./g, "$&$&");
  if (digits?.length === 6 || digits?.length === 8) return digits.slice(0, 6);
  const [, ...parts] =
    /^rgba?\( {0,9}(\d{1,3})[ ,]{1,9}(\d{1,3})[ ,]{1,9}(\d{1,3})(?:[ ,/]{1,9}[\d.]{1,9}%?)? {0,9}\)$/.exec(text) ?? [];
  if (parts.length === 0) return named.get(text);
  return Buffer.from(parts.map((part) => Math.min(255, Number(part)))).toString("hex");
}

/** Returns the tag of WebVTT for text of a colour, as YouTube writes it; its end is `</c>`. */
export const colorTag = (digits: string): string => `c.color${digits}`;

/** Returns the tags that end some parts of a text and begin others; of those that stay open the outer ones come first in both. */
export function changeTags(before: readonly string[], after: readonly string[]): string {
  const firstOther = before.findIndex((tag, index) => tag !== after[index]);
  const same = firstOther < 0 ? before.length : firstOther;
  const ends = before
    .slice(same)
    .toReversed()
    .map((tag) => `</${tag.split(".", 1)[0]}>`);
  return [...ends, ...after.slice(same).map((tag) => `<${tag}>`)].join("");
}

const isColor = (tag: string): boolean => tag.startsWith("c.");

/** Adds a tag to those of a text, which has one colour: white, the default, has none. */
export function addStyle(tags: Set<string>, added: string): void {
  if (isColor(added)) for (const tag of [...tags].filter(isColor)) tags.delete(tag);
  if (added !== colorTag("ffffff")) tags.add(added);
}
