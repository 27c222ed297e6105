import { isUpstreamError } from "../../../model/errors.ts";

/** Places of the same media, of which one that fails is replaced by another. */
export class Mirrors<Place> {
  /** Those asked for so far; the first is where the media are listed. `undefined`: there are no more. */
  readonly #places: Promise<Place | undefined>[];
  readonly #others: AsyncIterator<Place>;
  /** Index of the one that served last. */
  #current = 0;

  constructor(first: Place, others: AsyncIterable<Place>) {
    this.#places = [Promise.resolve(first)];
    this.#others = others[Symbol.asyncIterator]();
  }

  /**
   * Calls `fetch` with a place and its index: the one that served last, and after a failure of its site the others in their order.
   *
   * @throws the error of the first call, if no place serves; at once if it is not an upstream error.
   */
  async fetch<T>(fetch: (place: Place, index: number) => Promise<T>): Promise<T> {
    const start = this.#current;
    try {
      return await fetch((await this.#at(start))!, start);
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
      for (let index = 0; ; index += 1) {
        const place = await this.#at(index);
        if (place === undefined) throw error;
        if (index === start) continue;
        try {
          const fetched = await fetch(place, index);
          this.#current = index;
          return fetched;
        } catch (next) {
          if (!isUpstreamError(next)) throw next;
        }
      }
    }
  }

  #at(index: number): Promise<Place | undefined> {
    return (this.#places[index] ??= this.#others.next().then(({ done, value }) => (done === true ? undefined : value)));
  }
}
