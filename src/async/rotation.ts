/** What waits, by owner: owners take turns, and what one owner has comes in the order in which it was added. */
export class Rotation<T> {
  /** First the owner whose turn it is. */
  readonly #byOwner = new Map<string, Set<T>>();

  get isEmpty(): boolean {
    return this.#byOwner.size === 0;
  }

  /** The owners of what waits, in the order of their turns. */
  owners(): string[] {
    return [...this.#byOwner.keys()];
  }

  /** Whether anything of the owner waits. */
  hasAny(owner: string): boolean {
    return this.#byOwner.has(owner);
  }

  has(owner: string, item: T): boolean {
    return this.#byOwner.get(owner)?.has(item) === true;
  }

  add(owner: string, item: T): void {
    this.#byOwner.getOrInsertComputed(owner, () => new Set()).add(item);
  }

  /** Removes an item, if it waits; the turn of its owner stays. */
  delete(owner: string, item: T): void {
    const items = this.#byOwner.get(owner);
    items?.delete(item);
    if (items?.size === 0) this.#byOwner.delete(owner);
  }

  /** Removes and returns the first item of an owner, by default of the one whose turn it is, who comes last then; undefined: none waits. */
  take(owner = this.#byOwner.keys().next().value): T | undefined {
    if (owner === undefined) return undefined;
    const items = this.#byOwner.get(owner);
    const [item] = items ?? [];
    if (items === undefined || item === undefined) return undefined;
    items.delete(item);
    this.#byOwner.delete(owner);
    if (items.size > 0) this.#byOwner.set(owner, items);
    return item;
  }
}
