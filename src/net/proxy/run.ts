import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { ServiceError } from "../../model/errors.ts";

/** What the proxy does with a run. */
export type RunEntry = ReturnType<typeof createRun>;

/** The use of the proxy by one run of the local program. */
export type ProxyRun = Pick<RunEntry, "url" | "error" | "close">;

interface RunLimits {
  /** Most bytes of all connections to the local program, both directions, with headers. */
  maxBytes: number;
  maxConnections: number;
}

/** Creates a run with a random secret. `onClose` is called once. */
export function createRun(
  { name, port }: { name: string; port: number },
  { maxBytes, maxConnections }: RunLimits,
  onClose: () => void,
) {
  const secret = randomBytes(32).toString("base64url");
  /** The open sockets, each with its bytes that are counted already. */
  const sockets = new Map<Socket, number>();
  let bytes = 0;
  let error: ServiceError | null = null;
  let isClosed = false;

  /** Destroys all sockets of the run, to either side, and refuses its credential; safe to call twice. */
  function close(): void {
    if (isClosed) return;
    isClosed = true;
    onClose();
    for (const socket of sockets.keys()) socket.destroy();
  }

  /** Counts the bytes that have passed through `socket` since the last call. */
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
    name,

    /** The credential in it is valid until the run is closed. */
    url: `http://${name}:${secret}@127.0.0.1:${port}`,

    /**
     * The first request or connection of this run that the guard refused or that failed: what the client of the proxy sees
     * of it is only a status or a closed connection. `too_large` replaces it, as it ends the run. A server's response of any
     * status is no failure, nor is what `close` ends.
     */
    get error(): ServiceError | null {
      return error;
    },

    isSecret: (given: string) => isEqual(Buffer.from(given), Buffer.from(secret)),

    /** Adds a connection of the local program; false if the run has its most already. */
    add(socket: Socket): boolean {
      if (sockets.size >= maxConnections) return false;
      sockets.set(socket, 0);
      socket.once("close", () => {
        measure(socket);
        sockets.delete(socket);
      });
      return true;
    },

    fail(failure: ServiceError): void {
      if (!isClosed) error ??= failure;
    },

    measure,
    close,
  };
}

function isEqual(given: Buffer, secret: Buffer): boolean {
  return given.length === secret.length && timingSafeEqual(given, secret);
}
