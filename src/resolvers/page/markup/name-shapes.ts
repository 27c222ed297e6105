/** How many lengths of names are told apart; longer ones are as the longest. */
const lengths = 16;

/** The first letters and lengths of some names: most other names are told from them without being cut out. */
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
