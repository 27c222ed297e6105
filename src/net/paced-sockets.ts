import type { Socket } from "node:net";
import { Rotation } from "../async/rotation.ts";

/** After this time of parsing responses other work has its turn, milliseconds. */
const maxMs = 10;

/** For whom sockets are read. */
const owners = new WeakMap<Socket, string>();
/** Sockets whose reader waits for the next turn of the event loop, by owner. */
const waiting = new Rotation<Socket>();
/** When the first of the sockets was read in this turn, by `performance.now()`. */
let startMs: number | undefined;

/** Says for whom a socket is read from now on. */
export function setReader(socket: Socket, owner: string): void {
  const isDelayed = isWaiting(socket);
  waiting.delete(ownerOf(socket), socket);
  owners.set(socket, owner);
  if (isDelayed) delay(socket);
}

/**
 * Delays reads of a socket to the next turn of the event loop once 10 ms have passed since the first read of all such sockets in this turn:
 * 64 KiB of chunks of a byte take milliseconds to parse, and there may be a socket for each of a hundred sites. Owners take turns.
 * A connection that is lost meanwhile is destroyed once its reader has had what was received before.
 */
export function paceReads(socket: Socket): void {
  const read = socket.read.bind(socket);
  const destroy = socket.destroy.bind(socket);
  socket.read = (bytes) => {
    // Without bytes it may have ended, which must be known before the connection is used again.
    if (socket.readableLength === 0 || hasTime()) return read(bytes);
    delay(socket);
    return null;
  };
  socket.destroy = (error) => {
    if (!isWaiting(socket) || !isOfRead(error)) return destroy(error);
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
  while (!waiting.isEmpty && hasTime()) {
    const socket = waiting.take();
    if (socket === undefined) return;
    socket.emit("readable");
    if (!isWaiting(socket)) socket.emit(hasReadAll);
  }
}

const ownerOf = (socket: Socket): string => owners.get(socket) ?? "";

const isWaiting = (socket: Socket): boolean => waiting.has(ownerOf(socket), socket);

const delay = (socket: Socket): void => waiting.add(ownerOf(socket), socket);
