/** Where in a name a word counts. */
interface Places {
  /** Anywhere, also within a longer word: `play` in `autoplay`. */
  part?: string;
  /** As a whole word. */
  word?: string;
  /** At the name's end. */
  end?: string;
  /** As the whole name. */
  name?: string;
  /** A name with such a word, in any place, does not have the role. */
  not?: string;
}

/** Which roles the words in a name have. Each look-up takes linear time. */
interface Lexicon<Role extends string> {
  has(name: string, role: Role): boolean;
  rolesIn(name: string): number;
  bitsOf(...roles: Role[]): number;
}

/** Longer names are cut, UTF-16 code units. */
const maxLength = 1_000;

/** Creates a lexicon of at most 31 roles, each with its words. A `-` in a word: there may be a boundary of words. */
export function createLexicon<Role extends string>(words: Readonly<Record<Role, Places>>): Lexicon<Role> {
  const bits = new Map<string, number>();
  const patterns: Pattern[] = [];
  for (const [role, places] of Object.entries<Places>(words)) {
    const bit = 1 << bits.size;
    bits.set(role, bit);
    for (const [place, listed] of Object.entries(places) as [keyof Places, string][]) {
      const isDenied = place === "not";
      for (const word of listed.split(" ").flatMap(spellingsOf))
        patterns.push({ letters: lettersOf(word, place), bit, isDenied });
    }
  }
  const rolesIn = createSearch(patterns);
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

/** A boundary of words, 26 letters, 10 digits, and the edge of a name: its start before, its end after a boundary. */
const letterCount = 38;
const BOUNDARY = 0;
const FIRST_DIGIT = 27;
const EDGE = 37;
/** Added to a capital. */
const CAPITAL = 64;
/** The letter of each ASCII character. */
const alphabet = new Uint8Array(128);
for (let i = 0; i < 26; i++) {
  alphabet[97 + i] = i + 1;
  alphabet[65 + i] = (i + 1) | CAPITAL;
}
for (let i = 0; i < 10; i++) alphabet[48 + i] = FIRST_DIGIT + i;

/** What is searched for in the letters of a name. */
interface Pattern {
  letters: readonly number[];
  bit: number;
  isDenied: boolean;
}

function lettersOf(word: string, place: keyof Places): number[] {
  const letters = [...spelled.subarray(0, spell(word))];
  // Each name starts with an edge and a boundary, and ends with a boundary and an edge.
  const start = place === "name" ? 0 : place === "word" ? 1 : 2;
  const end = place === "name" || place === "end" ? 0 : place === "word" ? 1 : 2;
  return letters.slice(start, letters.length - end);
}

/** The letters of the name that is looked up. */
const spelled = new Uint8Array(2 * maxLength + 4);
spelled[0] = EDGE;

/** Splits a name such as `adTagURLs`, `next_video` or `data-mp4` into words and writes its letters; returns their number. */
function spell(name: string): number {
  const end = Math.min(name.length, maxLength);
  let before = BOUNDARY;
  let isAfterCapital = false;
  // After an edge and a boundary.
  let length = 2;
  for (let at = 0; at < end; at++) {
    const code = name.charCodeAt(at);
    const character = code < 128 ? alphabet[code]! : BOUNDARY;
    const isCapital = character >= CAPITAL;
    const letter = isCapital ? character - CAPITAL : character;
    if (before === BOUNDARY) {
      if (letter === BOUNDARY) continue;
    } else if (isCapital ? !isAfterCapital || isBeforeSmall(name, at) : changesKind(before, letter))
      spelled[length++] = BOUNDARY;
    spelled[length++] = letter;
    before = letter;
    isAfterCapital = isCapital;
  }
  if (before !== BOUNDARY) spelled[length++] = BOUNDARY;
  spelled[length++] = EDGE;
  return length;
}

/** Whether one is a digit and the other a letter. */
function changesKind(before: number, letter: number): boolean {
  return letter !== BOUNDARY && before >= FIRST_DIGIT !== letter >= FIRST_DIGIT;
}

/** Whether a small letter follows the capital at `at`, but not as in `URLs`. */
function isBeforeSmall(name: string, at: number): boolean {
  const isPlural = name.charCodeAt(at + 1) === 115 && !isSmall(name.charCodeAt(at + 2));
  return isSmall(name.charCodeAt(at + 1)) && !isPlural;
}

function isSmall(code: number): boolean {
  return code >= 97 && code <= 122;
}

/** The columns of a row that hold the bits of the patterns that end there: those that a name has, and that it has not. */
const GIVEN = letterCount;
const DENIED = letterCount + 1;
const rowLength = letterCount + 2;

/** Returns a search for all patterns at once (Aho and Corasick 1975): each letter of a name leads to the next row of a table. */
function createSearch(patterns: readonly Pattern[]): (name: string) => number {
  // Created when it is first used: most processes read no page.
  let created: Int32Array | undefined;
  return (name) => {
    const table = (created ??= createTable(patterns));
    const length = spell(name);
    let row = 0;
    let given = 0;
    let denied = 0;
    for (let at = 0; at < length; at++) {
      row = table[row + spelled[at]!]!;
      given |= table[row + GIVEN]!;
      denied |= table[row + DENIED]!;
    }
    return given & ~denied;
  };
}

function createTable(patterns: readonly Pattern[]): Int32Array {
  const size = patterns.reduce((sum, { letters }) => sum + letters.length, 1);
  const table = new Int32Array(size * rowLength);
  let end = rowLength;
  for (const { letters, bit, isDenied } of patterns) {
    let row = 0;
    for (const letter of letters) {
      if (table[row + letter] === 0) {
        table[row + letter] = end;
        end += rowLength;
      }
      row = table[row + letter]!;
    }
    table[row + (isDenied ? DENIED : GIVEN)]! |= bit;
  }
  // Where no pattern continues, the longest one does that starts later.
  const fallbacks = new Map([[0, 0]]);
  for (const [row, fallback] of fallbacks) {
    for (let letter = 0; letter < letterCount; letter++) {
      const next = table[row + letter]!;
      const other = row === 0 ? 0 : table[fallback + letter]!;
      if (next === 0) table[row + letter] = other;
      else {
        fallbacks.set(next, other);
        table[next + GIVEN]! |= table[other + GIVEN]!;
        table[next + DENIED]! |= table[other + DENIED]!;
      }
    }
  }
  return table.slice(0, end);
}
