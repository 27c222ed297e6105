import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { ServiceError } from "../../model/errors.ts";

/** What its user sees of a run. */
export type ProxyRun = Pick<Run, "url" | "error" | "close">;

interface RunLimits {
  /** Most bytes of all connections to the local program, both directions, with headers. */
  maxBytes: number;
  maxConnections: number;
}

/** The use of the proxy by one run of the local program. */
export class Run {
  readonly name: string;
  /** The credential in it is valid until the run is closed. */
  readonly url: string;
  readonly #secret = randomBytes(32).toString("base64url");
  readonly #limits: RunLimits;
  readonly #onClose: () => void;
  /** The open sockets, each with its bytes that are counted already. */
  readonly #sockets = new Map<Socket, number>();
  #bytes = 0;
  #error: ServiceError | null = null;
  #isClosed = false;

  /** @param onClose Called once. */
  constructor({ name, port }: { name: string; port: number }, limits: RunLimits, onClose: () => void) {
    this.name = name;
    this.url = `http://${name}:${this.#secret}@127.0.0.1:${port}`;
    this.#limits = limits;
    this.#onClose = onClose;
  }

  /**
   * The first request or connection of this run that the guard refused or that failed: what the client of the proxy sees
   * of it is only a status or a closed connection. `too_large` replaces it, as it ends the run. A server's response of any
   * status is no failure, nor is what `close` ends.
   */
  get error(): ServiceError | null {
    return this.#error;
  }

  isSecret(given: string): boolean {
    return isEqual(Buffer.from(given), Buffer.from(this.#secret));
  }

  /** Adds a connection of the local program; false if the run has its most already. */
  add(socket: Socket): boolean {
    if (this.#sockets.size >= this.#limits.maxConnections) return false;
    this.#sockets.set(socket, 0);
    socket.once("close", () => {
      this.measure(socket);
      this.#sockets.delete(socket);
    });
    return true;
  }

  /** Counts the bytes that have passed through `socket` since the last call. */
  measure(socket: Socket): void {
    const counted = this.#sockets.get(socket);
    if (this.#isClosed || counted === undefined) return;
    const total = socket.bytesRead + socket.bytesWritten;
    this.#bytes += total - counted;
    this.#sockets.set(socket, total);
    const { maxBytes } = this.#limits;
    if (this.#bytes <= maxBytes) return;
    const rule = `the limit is ${maxBytes} bytes`;
    this.#error = new ServiceError("too_large", `reading the page took ${this.#bytes} bytes; ${rule}`);
    this.close();
  }

  fail(failure: ServiceError): void {
    if (!this.#isClosed) this.#error ??= failure;
  }

  /** Destroys all sockets of the run, to either side, and refuses its credential; safe to call twice. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
    for (const socket of this.#sockets.keys()) socket.destroy();
  }
}

function isEqual(given: Buffer, secret: Buffer): boolean {
  return given.length === secret.length && timingSafeEqual(given, secret);
}
