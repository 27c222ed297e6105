/** Whether `itemprop` or `itemscope` stands at `i`, where the caller has seen an i. */
export function isMicrodataName(source: string, i: number): boolean {
  if ((source.charCodeAt(i + 1) | 32) !== 116 || (source.charCodeAt(i + 2) | 32) !== 101) return false;
  const name = source.slice(i, i + 9).toLowerCase();
  return name === "itemscope" || name.startsWith("itemprop");
}

/** Whether `data` stands before the hyphen at `i`, or the hyphen is that of `x-data`. */
export function isDataPrefix(source: string, i: number): boolean {
  if ((source.charCodeAt(i - 1) | 32) === 120) return source.startsWith("data", i + 1);
  if ((source.charCodeAt(i - 1) | 32) !== 97 || (source.charCodeAt(i - 2) | 32) !== 116) return false;
  return (source.charCodeAt(i - 3) | 32) === 97 && (source.charCodeAt(i - 4) | 32) === 100;
}

/** Whether the name of a tag from `start` to `end` is `a`. */
export function isLink(source: string, start: number, end: number): boolean {
  return end - start === 1 && (source.charCodeAt(start) | 32) === 97;
}

export function isLetter(code: number): boolean {
  const lower = code | 32;
  return lower >= 97 && lower <= 122;
}

export function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

/** Whether it ends a tag's name: white space, `/` or `>`. */
export function isNameEnd(code: number): boolean {
  return code === 62 || code === 47 || isSpace(code);
}

/** How many lengths of names are distinguished; longer ones count as the longest. */
const lengths = 16;

/** The first letters and lengths of some names: most other names are recognized as others without being cut out. */
export class NameShapes {
  readonly #shapes = new Uint8Array(32 * lengths);

  constructor(names: Iterable<string>) {
    for (const name of names) this.#shapes[shapeOf(name, 0, name.length)] = 1;
  }

  /** Whether what stands in `text` from `start` to `end` may be one of the names, in lower or upper case. */
  has(text: string, start: number, end: number): boolean {
    return this.#shapes[shapeOf(text, start, end)] === 1;
  }
}

function shapeOf(text: string, start: number, end: number): number {
  return (text.charCodeAt(start) & 31) * lengths + Math.min(end - start, lengths - 1);
}
