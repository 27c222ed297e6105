/** Long enough to keep chunks few, short enough that moving the items of one costs nothing. */
const chunkLength = 512;

/**
 * Items in ascending order, kept in short chunks: adding, removing and finding take O(log n) steps
 * and move the items of one chunk at most, wherever in the list they fall.
 *
 * `compare` gives 0 for an item and itself only; what it reads of an item must not change while the
 * item is in the list.
 */
export class SortedList<T> {
  readonly #chunks: T[][] = [];
  readonly #compare: (a: T, b: T) => number;
  #length = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get length(): number {
    return this.#length;
  }

  first(): T | undefined {
    return this.#chunks[0]?.[0];
  }

  add(item: T): void {
    this.#length += 1;
    const tail = this.#chunks.at(-1);
    const last = tail?.at(-1);
    if (tail !== undefined && last !== undefined && this.#compare(last, item) < 0) {
      // At the end, where most items arrive.
      if (tail.length < chunkLength) tail.push(item);
      else this.#chunks.push([item]);
      return;
    }
    const reaches = (other: T) => this.#compare(other, item) >= 0;
    const at = Math.min(this.#chunkThat(reaches), Math.max(0, this.#chunks.length - 1));
    const chunk = (this.#chunks[at] ??= []);
    chunk.splice(firstThat(chunk, reaches), 0, item);
    if (chunk.length <= chunkLength) return;
    this.#chunks.splice(at + 1, 0, chunk.splice(chunkLength / 2));
  }

  /** Does nothing where the item is not in the list. */
  remove(item: T): void {
    const reaches = (other: T) => this.#compare(other, item) >= 0;
    const at = this.#chunkThat(reaches);
    const chunk = this.#chunks[at] ?? [];
    const place = firstThat(chunk, reaches);
    if (chunk[place] !== item) return;
    chunk.splice(place, 1);
    this.#length -= 1;
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /**
   * The last `limit` items, from the last one down; with `reaches` the last ones before the first
   * item for which it is true. It must be true for all items after that one too.
   */
  last(limit: number, reaches: (item: T) => boolean = () => false): T[] {
    const found: T[] = [];
    const edge = this.#chunkThat(reaches);
    for (let at = edge; at >= 0 && found.length < limit; at -= 1) {
      const chunk = this.#chunks[at] ?? [];
      const end = at === edge ? firstThat(chunk, reaches) : chunk.length;
      found.push(...chunk.slice(Math.max(0, end - limit + found.length), end).toReversed());
    }
    return found;
  }

  /** The first chunk whose last item reaches, else the number of chunks. */
  #chunkThat(reaches: (item: T) => boolean): number {
    return firstThat(this.#chunks, (chunk) => {
      const last = chunk.at(-1);
      return last !== undefined && reaches(last);
    });
  }
}

/** Binary search: the first index whose item holds, given that all after it do; else the length. */
function firstThat<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = items[middle];
    if (item !== undefined && holds(item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
