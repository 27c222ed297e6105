import type { ServerResponse } from "node:http";
import { Rotation } from "../../async/rotation.ts";

/**
 * Requests that begin in one turn of the event loop, if one owner sends all, and if several do. Each list or new task takes half a millisecond, so
 * with several the others would wait; with one, fewer turns cost less.
 */
const perTurn = { alone: 8, shared: 1 };

/** So long after a request of another one an owner counts as alone, milliseconds. */
const aloneAfterMs = 1_000;

interface WaitingRequest {
  response: ServerResponse;
  begin: () => void;
}

/**
 * Lets few requests begin in one turn of the event loop, so that others are read and served in between, however many connections one owner
 * has. Owners take turns, each owner's requests in their order.
 */
export class RequestTurns {
  readonly #waiting = new Rotation<WaitingRequest>();
  /** In the present turn of the event loop. */
  #begun = 0;
  #lastOwner = "";
  /** When the last request came of another owner than the one before it. */
  #sharedMs = 0;

  /** Calls `begin`, at once or in a later turn of the event loop; never, if the client has disconnected by then, or has a response. */
  add(owner: string, response: ServerResponse, begin: () => void): void {
    const request = { response, begin };
    if (owner !== this.#lastOwner) this.#sharedMs = performance.now();
    this.#lastOwner = owner;
    if (this.#waiting.isEmpty && this.#mayBegin()) this.#begin(request);
    else this.#waiting.add(owner, request);
  }

  #mayBegin(): boolean {
    const isShared = performance.now() - this.#sharedMs < aloneAfterMs;
    return this.#begun < (isShared ? perTurn.shared : perTurn.alone);
  }

  #begin({ response, begin }: WaitingRequest): void {
    // A response may have been sent because the key was removed, or the service stops.
    if (response.destroyed || response.writableEnded) return;
    if (this.#begun === 0) setImmediate(() => this.#startTurn());
    this.#begun += 1;
    begin();
  }

  #startTurn(): void {
    this.#begun = 0;
    while (this.#mayBegin()) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      this.#begin(next);
    }
  }
}
