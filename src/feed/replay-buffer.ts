interface OwnedEvent {
  owner: string | null;
  json: string;
}

interface ReplayBounds {
  maxEvents: number;
  /** Of the JSON of the events, UTF-16 units. */
  maxLength: number;
}

/**
 * The newest events of a sequence numbered from 1. An event takes one of `maxEvents` places; one that is longer than
 * `maxLength / maxEvents` takes its length divided by that. Half of the places have the newest events, whoever owns them, for clients that
 * are a moment behind. If there are not enough places, the owner that has the most in the other half loses its oldest event: an owner with
 * many changes loses its own, and not those of the others.
 */
export class ReplayBuffer<Event extends OwnedEvent> {
  /** The number of the newest event; 0: there has been none. */
  newest = 0;
  readonly #bounds: ReplayBounds;
  readonly #owners = new Map<string | null, PlacedQueue<Event>>();
  /** Those after the last one that was dropped. */
  #all = createQueue<Event>(0);
  /** Those that are kept whoever owns them. */
  #recent: PlacedQueue<Event> = { ...createQueue<Event>(0), places: 0 };
  /** After which number no event was dropped of an owner that has none here. */
  #reachOfOthers = 0;
  #places = 0;

  constructor(bounds: ReplayBounds) {
    this.#bounds = bounds;
  }

  /** Keeps the next event; not if it alone takes more than all places. */
  add(event: Event): void {
    this.newest += 1;
    const own = this.#owners.get(event.owner) ?? { ...createQueue<Event>(this.#reachOfOthers), places: 0 };
    this.#owners.set(event.owner, own);
    for (const queue of [own, this.#all, this.#recent]) queue.kept.push({ number: this.newest, event });
    const places = this.#placesOf(event);
    this.#places += places;
    this.#recent.places += places;
    while (this.#recent.places > this.#bounds.maxEvents / 2) this.#ageOne();
    while (this.#places > this.#bounds.maxEvents) this.#dropOne();
  }

  /** Clears the buffer; the next event gets number `n + 1`. */
  resetTo(n: number): void {
    this.#owners.clear();
    this.#places = 0;
    this.skipTo(n);
    this.#all = createQueue(n);
    this.#recent = { ...createQueue(n), places: 0 };
  }

  /** Leaves a gap: the next event gets number `n + 1`, and only of owners that have events here is it known that none is missing. */
  skipTo(n: number): void {
    dropUntil(this.#all, n);
    this.newest = this.#reachOfOthers = n;
  }

  /**
   * Returns the first `count` events after number `n`, oldest first, of all owners or of one; undefined if one of them is gone or `n` is
   * not reached yet.
   */
  after(n: number, count: number, owner?: string): Event[] | undefined {
    const queue =
      owner === undefined ? this.#all : (this.#owners.get(owner) ?? createQueue<Event>(this.#reachOfOthers));
    if (n < queue.reach || n > this.newest) return undefined;
    const first = findAfter(queue, n);
    return queue.kept.slice(first, first + count).map(({ event }) => event);
  }

  #placesOf({ json }: Event): number {
    return Math.max(1, (json.length * this.#bounds.maxEvents) / this.#bounds.maxLength);
  }

  /** Counts the oldest of the recent events among its owner's. */
  #ageOne(): void {
    const oldest = this.#recent.kept[this.#recent.start];
    if (oldest === undefined) return;
    const places = this.#placesOf(oldest.event);
    dropUntil(this.#recent, oldest.number);
    this.#recent.places -= places;
    const own = this.#owners.get(oldest.event.owner);
    if (own !== undefined) own.places += places;
  }

  #dropOne(): void {
    let most: PlacedQueue<Event> | undefined;
    for (const own of this.#owners.values()) {
      if (most === undefined || own.places > most.places) most = own;
    }
    const oldest = most?.kept[most.start];
    if (most === undefined || oldest === undefined) return;
    const places = this.#placesOf(oldest.event);
    this.#places -= places;
    most.places -= places;
    for (const queue of [most, this.#all]) dropUntil(queue, oldest.number);
    if (most.kept.length > 0) return;
    this.#owners.delete(oldest.event.owner);
    this.#reachOfOthers = Math.max(this.#reachOfOthers, most.reach);
  }
}

/** Events in the order of their numbers. */
interface Queue<Event> {
  kept: { number: number; event: Event }[];
  /** Those before this index were dropped. */
  start: number;
  /** After this number none was dropped. */
  reach: number;
}

interface PlacedQueue<Event> extends Queue<Event> {
  /** Of an owner's queue those of the events that are not recent. */
  places: number;
}

function createQueue<Event>(reach: number): Queue<Event> {
  return { kept: [], start: 0, reach };
}

/** Drops the events up to this number. */
function dropUntil(queue: Queue<unknown>, number: number): void {
  queue.reach = Math.max(queue.reach, number);
  while ((queue.kept[queue.start]?.number ?? Infinity) <= number) queue.start += 1;
  // Now and then, as each time moves all that are left.
  if (queue.start <= queue.kept.length / 2) return;
  queue.kept = queue.kept.slice(queue.start);
  queue.start = 0;
}

/** Returns the index of the first event after this number. */
function findAfter({ kept, start }: Queue<unknown>, number: number): number {
  let [low, high] = [start, kept.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((kept[middle]?.number ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
