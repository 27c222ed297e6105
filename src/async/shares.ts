import { untilAborted } from "./deadline.ts";
import { Rotation } from "./rotation.ts";

/** Gives a place back; safe to call twice. */
export type Release = () => void;

type Admit = (release: Release) => void;

/**
 * How many places an owner gets:
 *
 * - `fair`: one without a place always gets one; one that has fewer than its share, the total divided by the owners that have places, gets
 *   another one; beyond that, an owner gets what is free, all of it if there is no other owner. So while some have more than their
 *   shares, the others take theirs beyond the total: up to twice as many places, and more only if owners without a place get one.
 * - `firm`: what is free. The total is never exceeded: an owner may have to wait until another gives a place back.
 * - `spare`: as `firm`, but one that has no place gets one beyond the total while none is free and some owner has several.
 * - `half`: at most half of the places that the others do not have, rounded up, within the total.
 */
type ShareRule = "fair" | "firm" | "spare" | "half";

/** Limits how much work is done at a time. Owners share the places for it, so that none starves the others. Nobody loses a place. */
export class Shares {
  readonly #total: number;
  readonly #rule: ShareRule;
  /** How many places each owner has; at least one. */
  readonly #held = new Map<string, number>();
  readonly #waiting = new Rotation<Admit>();
  #taken = 0;

  /** With a `total` of 0 there are no places. */
  constructor(total: number, rule: ShareRule = "fair") {
    this.#total = total;
    this.#rule = rule;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Returns how many places the owner may take now. */
  free(owner: string): number {
    if (this.#total === 0) return 0;
    const unused = this.#total - this.#taken;
    const own = this.#placesOf(owner);
    const isNew = own === 0;
    if (this.#rule === "half") return Math.max(0, Math.ceil((unused + own) / 2) - own);
    if (this.#rule === "spare" && isNew && unused === 0 && this.#held.size < this.#taken) return 1;
    if (this.#rule !== "fair") return Math.max(0, unused);
    const share = Math.floor(this.#total / (this.#held.size + Number(isNew)));
    return Math.max(unused, Math.min(share - own, unused + this.#total), Number(isNew));
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
