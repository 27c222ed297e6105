import type { Socket } from "node:net";

/** After this time of parsing responses other work has its turn, milliseconds. */
const maxMs = 10;

/** Sockets whose reader waits for the next turn of the event loop, the one that waits longest first. */
const waiting = new Set<Socket>();
/** When the first of the sockets was read in this turn, by `performance.now()`. */
let startMs: number | undefined;

/**
 * Delays reads of a socket to the next turn of the event loop once 10 ms have passed since the first read of all such sockets in this turn:
 * 64 KiB of chunks of a byte take milliseconds to parse, and there may be a socket for each of a hundred sites.
 * A connection that is lost meanwhile is destroyed once its reader has had what was received before.
 */
export function paceReads(socket: Socket): void {
  const read = socket.read.bind(socket);
  const destroy = socket.destroy.bind(socket);
  socket.read = (bytes) => {
    // Without bytes it may have ended, which must be known before the connection is used again.
    if (socket.readableLength === 0 || hasTime()) return read(bytes);
    waiting.add(socket);
    return null;
  };
  socket.destroy = (error) => {
    if (!waiting.has(socket) || !isOfRead(error)) return destroy(error);
    return socket.once(hasReadAll, () => destroy(error));
  };
}

const hasReadAll = Symbol("has read all");

/** Whether it says that no more can be received, and not that the reader wants no more. */
const isOfRead = (error: NodeJS.ErrnoException | undefined): boolean => error?.syscall === "read";

function hasTime(): boolean {
  if (startMs !== undefined) return performance.now() - startMs < maxMs;
  startMs = performance.now();
  setImmediate(startTurn);
  return true;
}

function startTurn(): void {
  startMs = undefined;
  for (const socket of waiting) {
    if (!hasTime()) return;
    waiting.delete(socket);
    socket.emit("readable");
    if (!waiting.has(socket)) socket.emit(hasReadAll);
  }
}
