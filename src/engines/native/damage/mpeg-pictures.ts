import { Tally } from "./tally.ts";

/** Start codes of MPEG-1 and MPEG-2 video (ISO/IEC 13818-2 §6.2.1), after 00 00 01; those of slices are the numbers of their rows. */
const codes = { picture: 0x00, firstSlice: 0x01, lastSlice: 0xaf, sequence: 0xb3, group: 0xb8 };
const startCode = Buffer.from([0, 0, 1]);
/** Of a start code, with what follows that of a sequence: the height of its pictures. */
const keptBytes = 7;

/** Pictures of a longer group have the numbers of others again. */
const maxGroup = 1024;

/**
 * Checks the pictures of a stream of MPEG-1 or MPEG-2 video: the slices of each begin in the first row, and in every row after that to the
 * last one; and the numbers of those in a group are all there, once, from the lowest to the highest. What comes before the first
 * picture and group, and the last ones, are not looked at: a file may be a part of a stream.
 */
export class MpegPictures {
  readonly #pictures = new Tally();
  readonly #groups = new Tally();
  /** The last rows that a picture may have: a frame, and a field. */
  #lastRows: ReadonlySet<number> = new Set();
  /** Of the latest slice; `null`: the picture is not looked at. */
  #row: number | null = null;
  #isRight = true;
  /** Numbers of pictures in the order of display; `null`: the group is not looked at. */
  #numbers: number[] | null = null;
  /** The end of what was read, which a start code may be in. */
  #rest = Buffer.alloc(0);

  /** Gets the next bytes of the stream. */
  take(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let next = 0;
    for (let at = all.indexOf(startCode); at >= 0; at = all.indexOf(startCode, next)) {
      next = at;
      if (at + keptBytes > all.length) break;
      this.#read(all, at + startCode.length);
      next = at + startCode.length;
    }
    this.#rest = Buffer.from(all.subarray(Math.max(next, all.length - keptBytes + 1)));
  }

  /** Call this where bytes are known to be missing: the picture and the group there are not looked at. */
  skip(): void {
    this.#row = null;
    this.#numbers = null;
    this.#rest = Buffer.alloc(0);
  }

  /** Returns the number of places at which pictures are damaged or missing. */
  places(): number {
    return Math.max(damagedPlaces(this.#pictures), damagedPlaces(this.#groups));
  }

  #read(bytes: Buffer, at: number): void {
    const code = bytes[at]!;
    if (code >= codes.firstSlice && code <= codes.lastSlice) return this.#addSlice(code);
    if (code === codes.picture) {
      this.#endPicture();
      this.#addNumber(bytes.readUInt16BE(at + 1) >> 6);
    } else if (code === codes.sequence) {
      this.#endPicture();
      this.#lastRows = lastRowsOf(bytes.readUInt16BE(at + 2) & 0xfff);
    } else if (code === codes.group) {
      if (this.#numbers !== null) this.#groups.count(isComplete(this.#numbers));
      this.#numbers = [];
    }
  }

  #addSlice(row: number): void {
    if (this.#row === null) return;
    if (row !== this.#row && row !== this.#row + 1) this.#isRight = false;
    this.#row = row;
  }

  #addNumber(number: number): void {
    if (this.#numbers?.length === maxGroup) this.#numbers = null;
    this.#numbers?.push(number);
  }

  #endPicture(): void {
    if (this.#row !== null && this.#row > 0) this.#pictures.count(this.#isRight && this.#lastRows.has(this.#row));
    this.#row = 0;
    this.#isRight = true;
  }
}

/** Returns the numbers of the last rows of pictures of this height: of a frame, of one that is interlaced, and of a field. */
function lastRowsOf(height: number): Set<number> {
  const fieldRows = Math.ceil(height / 32);
  return new Set([Math.ceil(height / 16), 2 * fieldRows, fieldRows]);
}

/** Whether all numbers from the lowest to the highest are there once; two fields of a frame, one after the other, have the same. */
function isComplete(numbers: readonly number[]): boolean {
  const frames = numbers.filter((number, i) => number !== numbers[i - 1]);
  const distinct = new Set(frames).size;
  return distinct === frames.length && (distinct === 0 || Math.max(...frames) - Math.min(...frames) + 1 === distinct);
}

const understoodItems = 8;
/** How many items must be right for each damaged one: in MPEG-1 a slice may have several rows. */
const rightPerDamaged = 4;

/** Returns the number of places at which items are damaged; 0 if many are: then they mean something else. */
function damagedPlaces({ right, damaged, places }: Tally): number {
  return right >= understoodItems && damaged * rightPerDamaged <= right ? places : 0;
}
