import type { ByteSpan } from "../../../remux/samples.ts";

/** No codec that compresses writes so many zeros. */
export const zeroBlockBytes = 2048;
const zeros = Buffer.alloc(zeroBlockBytes);

/** Returns whether the block of `bytes` from `from` on has only zeros. */
export function isZeroBlock(bytes: Buffer, from: number): boolean {
  return bytes[from] === 0 && bytes.compare(zeros, 0, zeroBlockBytes, from, from + zeroBlockBytes) === 0;
}

const maxRuns = 1000;

/** Finds where a file that is read from its start to its end has nothing but zeros: whole blocks, the first 1,000 runs of them. */
export class ZeroRuns {
  /** In order. */
  readonly found: ByteSpan[] = [];
  #at = 0;

  /** Gets the next bytes of the file; it is done with them when it returns. */
  take(bytes: Buffer): void {
    const start = this.#at;
    const first = Math.ceil(start / zeroBlockBytes) * zeroBlockBytes - start;
    for (let from = first; from + zeroBlockBytes <= bytes.length; from += zeroBlockBytes) {
      if (isZeroBlock(bytes, from)) this.#add(start + from);
    }
    this.#at += bytes.length;
  }

  #add(start: number): void {
    const last = this.found.at(-1);
    if (last?.end === start) last.end += zeroBlockBytes;
    else if (this.found.length < maxRuns) this.found.push({ start, end: start + zeroBlockBytes });
  }
}
