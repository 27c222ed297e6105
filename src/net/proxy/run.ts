import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { ServiceError } from "../../model/errors.ts";

/** The use of the proxy by one run of the local program. */
export interface ProxyRun {
  /** `http://<name>:<secret>@127.0.0.1:<port>`; the credential is valid until the run is closed. */
  readonly url: string;
  /**
   * The first request or connection of this run that the guard refused or that failed: what the client of
   * the proxy sees of it is only a status or a closed connection. `too_large` replaces it, as it ends the
   * run. A server's response of any status is no failure, nor is what `close` ends.
   */
  readonly error: ServiceError | null;
  /** Destroys all sockets of the run, to either side, and refuses its credential; safe to call twice. */
  close(): void;
}

export interface RunLimits {
  /** Most bytes of all connections to the local program, both directions, with headers. */
  maxBytes: number;
  maxConnections: number;
}

/** What the proxy does with a run. */
export interface RunEntry extends ProxyRun {
  isSecret(given: string): boolean;
  /** Adds a connection of the local program; false if the run has its most already. */
  add(socket: Socket): boolean;
  /** Counts the bytes that have passed through `socket` since the last call. */
  measure(socket: Socket): void;
  fail(error: ServiceError): void;
}

/** Creates a run with a random secret. `onClose` is called once. */
export function createRun(
  { name, port }: { name: string; port: number },
  { maxBytes, maxConnections }: RunLimits,
  onClose: () => void,
): RunEntry {
  const secret = randomBytes(32).toString("base64url");
  /** The open sockets, each with its bytes that are counted already. */
  const sockets = new Map<Socket, number>();
  let bytes = 0;
  let error: ServiceError | null = null;
  let isClosed = false;

  function close(): void {
    if (isClosed) return;
    isClosed = true;
    onClose();
    for (const socket of sockets.keys()) socket.destroy();
  }

  function measure(socket: Socket): void {
    const counted = sockets.get(socket);
    if (isClosed || counted === undefined) return;
    const total = socket.bytesRead + socket.bytesWritten;
    bytes += total - counted;
    sockets.set(socket, total);
    if (bytes <= maxBytes) return;
    error = new ServiceError("too_large", `reading the page took ${bytes} bytes; the limit is ${maxBytes} bytes`);
    close();
  }

  return {
    url: `http://${name}:${secret}@127.0.0.1:${port}`,

    get error() {
      return error;
    },

    isSecret: (given) => isEqual(Buffer.from(given), Buffer.from(secret)),

    add(socket) {
      if (sockets.size >= maxConnections) return false;
      sockets.set(socket, 0);
      socket.once("close", () => {
        measure(socket);
        sockets.delete(socket);
      });
      return true;
    },

    fail(failure) {
      if (!isClosed) error ??= failure;
    },

    measure,
    close,
  };
}

function isEqual(given: Buffer, secret: Buffer): boolean {
  return given.length === secret.length && timingSafeEqual(given, secret);
}
