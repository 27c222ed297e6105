import { SortedList } from "./sorted-list.ts";

/** What the queue must know of an entry; `dueAtMs` and `place` are the queue's to write. */
export interface Queueable {
  readonly seq: number;
  readonly host: string;
  /** From when on a waiting entry may be claimed, Unix milliseconds. */
  dueAtMs: number;
  place: "ready" | "waiting" | "none";
}

interface HostQueue<T> {
  readonly entries: SortedList<T>;
  /** `seq` of its oldest entry. */
  head: number;
}

/**
 * Entries that can be claimed now, per host, and those that become so at a known time. Finding the
 * oldest one takes O(log n) steps for each host that is passed over, however many entries it has.
 */
export class ClaimQueue<T extends Queueable> {
  readonly #hosts = new Map<string, HostQueue<T>>();
  readonly #heads = new SortedList<HostQueue<T>>((a, b) => a.head - b.head);
  readonly #waiting = new SortedList<T>((a, b) => a.dueAtMs - b.dueAtMs || a.seq - b.seq);

  /** Makes the entry claimable now. */
  ready(entry: T): void {
    this.remove(entry);
    entry.place = "ready";
    const queue = this.#hosts.get(entry.host);
    if (queue === undefined) {
      const entries = new SortedList<T>((a, b) => a.seq - b.seq);
      entries.add(entry);
      const created = { entries, head: entry.seq };
      this.#hosts.set(entry.host, created);
      this.#heads.add(created);
      return;
    }
    queue.entries.add(entry);
    if (entry.seq < queue.head) this.#moveHead(queue, entry.seq);
  }

  /** Makes the entry claimable from `dueAtMs` on. */
  wait(entry: T, dueAtMs: number): void {
    this.remove(entry);
    entry.place = "waiting";
    entry.dueAtMs = dueAtMs;
    this.#waiting.add(entry);
  }

  remove(entry: T): void {
    if (entry.place === "waiting") this.#waiting.remove(entry);
    if (entry.place === "ready") this.#leaveHost(entry);
    entry.place = "none";
  }

  /** The oldest entry claimable at `nowMs` whose host is not excepted; it stays in the queue. */
  oldest(nowMs: number, exceptHosts: readonly string[]): T | undefined {
    this.#promote(nowMs);
    const passedOver = new Set(exceptHosts.map((host) => this.#hosts.get(host)));
    for (const queue of passedOver) if (queue !== undefined) this.#heads.remove(queue);
    const found = this.#heads.first()?.entries.first();
    for (const queue of passedOver) if (queue !== undefined) this.#heads.add(queue);
    return found;
  }

  #promote(nowMs: number): void {
    let entry = this.#waiting.first();
    while (entry !== undefined && entry.dueAtMs <= nowMs) {
      this.ready(entry);
      entry = this.#waiting.first();
    }
  }

  #leaveHost(entry: T): void {
    const queue = this.#hosts.get(entry.host);
    if (queue === undefined) return;
    queue.entries.remove(entry);
    const first = queue.entries.first();
    if (first !== undefined) {
      if (first.seq !== queue.head) this.#moveHead(queue, first.seq);
      return;
    }
    this.#heads.remove(queue);
    this.#hosts.delete(entry.host);
  }

  #moveHead(queue: HostQueue<T>, head: number): void {
    this.#heads.remove(queue);
    queue.head = head;
    this.#heads.add(queue);
  }
}
