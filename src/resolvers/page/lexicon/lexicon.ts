/**
 * Where in a name a word counts: `part`: anywhere, also within a longer word (`play` in `autoplay`); `word`: as a whole word; `end`:
 * at the name's end; `name`: as the whole name; `not`: nowhere, nor do the shorter words that it starts with.
 */
export type Where = "part" | "word" | "end" | "name" | "not";

/** A role, where its words count, why they have it, and the words; `-` in a word: there may be a boundary of words. */
export type Row<Role extends string> = readonly [Role, Where, why: string, words: string];

export interface Lexicon<Role extends string> {
  /** Returns the bits of the roles that words in `name` have. Takes linear time. */
  rolesIn(name: string): number;
  /** Returns the bits of these roles. */
  bitsOf(...roles: Role[]): number;
  /** Returns a function that tells whether words in a name have one of these roles. */
  matcher(...roles: Role[]): (name: string) => boolean;
}

/** Longer names are cut, UTF-16 code units. */
const maxLength = 1_000;
const BOUNDARY = 0;
/** A boundary of words, 26 letters and 10 digits. */
const letterCount = 37;

/** Creates a lexicon of at most 31 roles. */
export function createLexicon<Role extends string>(rows: readonly Row<Role>[]): Lexicon<Role> {
  const bits = Object.fromEntries(
    [...new Set(rows.map(([role]) => role))].map((role, index) => [role, 1 << index]),
  ) as Record<Role, number>;
  const tree = new WordTree();
  for (const [role, where, , words] of rows) {
    for (const word of words.split(" ")) {
      for (const spelling of spellingsOf(word)) tree.add(spelling, where, bits[role]);
    }
  }
  const rolesIn = tree.createSearch();
  const bitsOf = (...roles: Role[]) => roles.reduce((mask, role) => mask | bits[role], 0);
  return {
    rolesIn,
    bitsOf,
    matcher(...roles) {
      const mask = bitsOf(...roles);
      return (name) => (rolesIn(name) & mask) !== 0;
    },
  };
}

/** Returns a word with and without a boundary at each of its hyphens. */
function spellingsOf(word: string): string[] {
  const at = word.indexOf("-");
  if (at < 0) return [word];
  return spellingsOf(word.slice(at + 1)).flatMap((rest) =>
    ["", " "].map((boundary) => word.slice(0, at) + boundary + rest),
  );
}

/** Words by their letters, with the bits that each has. */
class WordTree {
  /** The node after each letter of each node; 0: none. */
  readonly #next: number[] = [];
  /** By node. */
  readonly #bits: Record<Where, number[]> = { part: [], word: [], end: [], name: [], not: [] };

  constructor() {
    this.#addNode();
  }

  add(word: string, where: Where, bits: number): void {
    const length = spell(word);
    let node = 0;
    for (let at = 0; at < length; at++) {
      const place = node * letterCount + (letters[at] ?? 0);
      if (this.#next[place] === 0) this.#next[place] = this.#addNode();
      node = this.#next[place] ?? 0;
    }
    this.#bits[where][node] = (this.#bits[where][node] ?? 0) | bits;
  }

  createSearch(): (name: string) => number {
    const next = Uint16Array.from(this.#next);
    const [part, word, end, whole, not] = (["part", "word", "end", "name", "not"] as const).map(
      (where) => Int32Array.from(this.#bits[where]),
    ) as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
    return (name) => {
      const length = spell(name);
      let found = 0;
      for (let start = 0; start < length; start++) {
        let here = 0;
        let node = next[letters[start]!]!;
        const startsWord = start === 0 || !isLetter(letters[start - 1]!);
        for (let at = start + 1; node !== 0; at++) {
          if (not[node] !== 0) here = 0;
          here |= part[node]!;
          if (startsWord && !isLetter(letters[at]!)) here |= word[node]!;
          if (at === length) {
            here |= end[node]! | (start === 0 ? whole[node]! : 0);
            break;
          }
          node = next[node * letterCount + letters[at]!]!;
        }
        found |= here;
      }
      return found;
    };
  }

  #addNode(): number {
    for (let letter = 0; letter < letterCount; letter++) this.#next.push(0);
    for (const bits of Object.values(this.#bits)) bits.push(0);
    return this.#bits.part.length - 1;
  }
}

/** The letters of the name that is looked up; a boundary follows the last one. */
const letters = new Uint8Array(2 * maxLength + 1);

const CAPITAL = 64;
/** The letter of each ASCII character. */
const letterOf = new Uint8Array(128);
for (let i = 0; i < 26; i++) {
  letterOf[97 + i] = i + 1;
  letterOf[65 + i] = (i + 1) | CAPITAL;
}
for (let i = 0; i < 10; i++) letterOf[48 + i] = 27 + i;

/** Splits a name such as `adTagURLs`, `next_video` or `data-src` into words and writes its letters; returns their number. */
function spell(name: string): number {
  const end = Math.min(name.length, maxLength);
  let length = 0;
  let before = BOUNDARY;
  let isAfterCapital = false;
  for (let at = 0; at < end; at++) {
    const code = name.charCodeAt(at);
    const spelled = code < 128 ? letterOf[code]! : BOUNDARY;
    const isCapital = spelled >= CAPITAL;
    const letter = isCapital ? spelled - CAPITAL : spelled;
    const startsWord = isCapital && before !== BOUNDARY;
    if (startsWord && (!isAfterCapital || isBeforeSmall(name, at))) letters[length++] = BOUNDARY;
    if (letter !== BOUNDARY || length > 0) letters[length++] = letter;
    before = letter;
    isAfterCapital = isCapital;
  }
  while (letters[length - 1] === BOUNDARY) length--;
  letters[length] = BOUNDARY;
  return length;
}

/** Whether a small letter follows the capital at `at`, but not as in `URLs`. */
function isBeforeSmall(name: string, at: number): boolean {
  const isPlural = name.charCodeAt(at + 1) === 115 && !isSmall(name.charCodeAt(at + 2));
  return isSmall(name.charCodeAt(at + 1)) && !isPlural;
}

function isSmall(code: number): boolean {
  return code >= 97 && code <= 122;
}

/** Whether it is a letter of a word, not a digit or a boundary. */
function isLetter(letter: number): boolean {
  return letter > BOUNDARY && letter <= 26;
}
