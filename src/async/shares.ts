import { untilAborted } from "./deadline.ts";
import { Rotation } from "./rotation.ts";

/** Gives a place back; safe to call twice. */
export type Release = () => void;

type Admit = (release: Release) => void;

/**
 * Limits how much work is done at a time. Owners share the places for it, so that none starves the others:
 *
 * - an owner without a place always gets one;
 * - one that has fewer than its share, `total` divided by the owners that have places, gets another one;
 * - beyond that, an owner gets what is free of the `total`: all of it, if there is no other owner.
 *
 * Nobody loses a place. So while some have more than their shares, the others take theirs beyond the `total`: up to twice as many places, and
 * more only if owners without a place get one. With a `total` of 0 there are no places.
 *
 * A firm `total` is never exceeded: an owner gets what is free, and may have to wait until another gives a place back. With a spare
 * place, an owner that has none gets one more than the `total` while no place is free and some owner has several.
 *
 * If owners leave half, each has at most half of the places that the others do not have, rounded up, and the `total` is firm.
 */
export class Shares {
  readonly #total: number;
  readonly #isFirm: boolean;
  readonly #hasSpare: boolean;
  readonly #leavesHalf: boolean;
  /** How many places each owner has; at least one. */
  readonly #held = new Map<string, number>();
  readonly #waiting = new Rotation<Admit>();
  #taken = 0;

  constructor(total: number, { isFirm = false, hasSpare = false, leavesHalf = false } = {}) {
    this.#total = total;
    this.#isFirm = isFirm;
    this.#hasSpare = hasSpare;
    this.#leavesHalf = leavesHalf;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Returns how many places the owner may take now. */
  free(owner: string): number {
    if (this.#total === 0) return 0;
    const unused = this.#total - this.#taken;
    const own = this.#placesOf(owner);
    if (this.#leavesHalf) return Math.max(0, Math.ceil((unused + own) / 2) - own);
    if (this.#isFirm) {
      const isSpare = this.#hasSpare && own === 0 && unused === 0 && this.#held.size < this.#taken;
      return isSpare ? 1 : Math.max(0, unused);
    }
    const owners = this.#held.size + Number(own === 0);
    const upToShare = Math.min(Math.floor(this.#total / owners) - own, unused + this.#total);
    return Math.max(unused, upToShare, Number(own === 0));
  }

  /** Takes a place; undefined if the owner gets none now. */
  take(owner: string): Release | undefined {
    return this.free(owner) > 0 ? this.#takePlace(owner) : undefined;
  }

  /**
   * Waits for a place. Places that become free go to the owner that has the fewest, or to several such owners in turn; each owner's calls in
   * their order.
   *
   * @throws `signal.reason` when `signal` is aborted.
   */
  async wait(owner: string, signal: AbortSignal): Promise<Release> {
    signal.throwIfAborted();
    if (!this.#waiting.hasAny(owner) && this.free(owner) > 0) return this.#takePlace(owner);
    const { promise, resolve } = Promise.withResolvers<Release>();
    this.#waiting.add(owner, resolve);
    try {
      return await untilAborted(promise, signal);
    } catch (error) {
      this.#waiting.delete(owner, resolve);
      // It may have got a place in the same moment.
      void promise.then((release) => release());
      throw error;
    }
  }

  /** Waits for a place as `wait` does, and has it until `work` has ended. */
  async run<T>(owner: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const release = await this.wait(owner, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #placesOf(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }

  #takePlace(owner: string): Release {
    let isTaken = true;
    this.#add(owner, 1);
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#add(owner, -1);
      this.#admitWaiting();
    };
  }

  #add(owner: string, change: 1 | -1): void {
    const own = this.#placesOf(owner) + change;
    if (own === 0) this.#held.delete(owner);
    else this.#held.set(owner, own);
    this.#taken += change;
  }

  #admitWaiting(): void {
    while (!this.#waiting.isEmpty) {
      const admissible = this.#waiting.owners().filter((owner) => this.free(owner) > 0);
      const [next] = admissible.toSorted((a, b) => this.#placesOf(a) - this.#placesOf(b));
      if (next === undefined) return;
      this.#waiting.take(next)?.(this.#takePlace(next));
    }
  }
}
