/** Where in a name a word counts. */
export interface Places {
  /** Anywhere, also within a longer word: `play` in `autoplay`. */
  part?: string;
  /** As a whole word. */
  word?: string;
  /** At the name's end. */
  end?: string;
  /** As the whole name. */
  name?: string;
  /** Nowhere, nor do the words that it starts with. */
  not?: string;
}

/** Which roles the words in a name have. Each look-up takes linear time. */
export interface Lexicon<Role extends string> {
  has(name: string, role: Role): boolean;
  /** Returns the bits of all roles. */
  rolesIn(name: string): number;
  bitsOf(...roles: Role[]): number;
}

/** Longer names are cut, UTF-16 code units. */
const maxLength = 1_000;
const BOUNDARY = 0;
/** A boundary of words, 26 letters and 10 digits. */
const letterCount = 37;

/** Creates a lexicon of at most 31 roles, each with its words. A `-` in a word: there may be a boundary of words. */
export function createLexicon<Role extends string>(
  words: Readonly<Record<Role, Places>>,
): Lexicon<Role> {
  const tree = new WordTree();
  const bits = new Map<string, number>();
  for (const [role, places] of Object.entries<Places>(words)) {
    bits.set(role, 1 << bits.size);
    for (const [place, listed] of Object.entries(places) as [keyof Places, string][]) {
      for (const spelling of listed.split(" ").flatMap(spellingsOf))
        tree.add(spelling, place, bits.get(role) ?? 0);
    }
  }
  const rolesIn = tree.createSearch();
  return {
    rolesIn,
    has: (name, role) => (rolesIn(name) & (bits.get(role) ?? 0)) !== 0,
    bitsOf: (...roles) => roles.reduce((mask, role) => mask | (bits.get(role) ?? 0), 0),
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

const places = ["part", "word", "end", "name", "not"] as const;

/** Words by their letters, with the bits that each has in each place. */
class WordTree {
  /** The node after each letter of each node; 0: none. */
  readonly #next: number[] = new Array<number>(letterCount).fill(0);
  /** By node and place. */
  readonly #bits: number[] = places.map(() => 0);

  add(word: string, place: keyof Places, bits: number): void {
    const length = spell(word);
    let node = 0;
    for (let at = 0; at < length; at++) {
      const branch = node * letterCount + letters[at]!;
      node = this.#next[branch] || (this.#next[branch] = this.#addNode());
    }
    this.#bits[node * places.length + places.indexOf(place)]! |= bits;
  }

  createSearch(): (name: string) => number {
    const next = Uint16Array.from(this.#next);
    const bits = Int32Array.from(this.#bits);
    return (name) => {
      const length = spell(name);
      let found = 0;
      for (let start = 0; start < length; start++) {
        const startsWord = start === 0 || !isLetter(letters[start - 1]!);
        let foundHere = 0;
        let node = next[letters[start]!]!;
        for (let end = start + 1; node !== 0; end++) {
          const row = node * places.length;
          if (bits[row + 4] !== 0) foundHere = 0;
          foundHere |= bits[row]!;
          if (startsWord && !isLetter(letters[end]!)) foundHere |= bits[row + 1]!;
          if (end === length) {
            foundHere |= bits[row + 2]! | (start === 0 ? bits[row + 3]! : 0);
            break;
          }
          node = next[node * letterCount + letters[end]!]!;
        }
        found |= foundHere;
      }
      return found;
    };
  }

  #addNode(): number {
    this.#next.push(...new Array<number>(letterCount).fill(0));
    return this.#bits.push(...places.map(() => 0)) / places.length - 1;
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
