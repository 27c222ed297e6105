import { type Entry, maxEntries } from "../../../model/entry.ts";
import type { EntrySlice } from "../../entries.ts";

/** Collects the entries of one slice of a list, as the list is read. */
export class SliceBuilder {
  readonly #start: number;
  readonly #listed: Entry[] = [];
  #count = 0;

  /** @param start Entries of the list before the slice. */
  constructor(start: number) {
    this.#start = start;
  }

  /** Entries of the list so far. */
  get count(): number {
    return this.#count;
  }

  /** Takes the next entry of the list; `make` is called only if it is in the slice. */
  add(make: () => Entry): void {
    if (this.#count >= this.#start && this.#listed.length < maxEntries) this.#listed.push(make());
    this.#count += 1;
  }

  /** Returns the slice of a list that has been read to its end. */
  build(): EntrySlice {
    const count = this.#count;
    return { start: this.#start, listed: this.#listed, hasMore: this.#start + this.#listed.length < count, count };
  }
}
