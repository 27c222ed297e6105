import type { ServerResponse } from "node:http";
import { Rotation } from "../../async/rotation.ts";

/** Requests that begin in one turn of the event loop: each list or new task takes half a millisecond. */
const perTurn = 8;

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

  /** Calls `begin`, at once or in a later turn of the event loop; never, if the client has disconnected by then, or has a response. */
  add(owner: string, response: ServerResponse, begin: () => void): void {
    const request = { response, begin };
    if (this.#waiting.isEmpty && this.#begun < perTurn) this.#begin(request);
    else this.#waiting.add(owner, request);
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
    while (this.#begun < perTurn) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      this.#begin(next);
    }
  }
}
