import type { Socket } from "node:net";

/** After this time of parsing responses other work has its turn, milliseconds. */
const maxMs = 10;

/** For whom sockets are read. */
const owners = new WeakMap<Socket, string>();
/** Sockets whose reader waits for the next turn of the event loop, by owner: first the owner whose turn it is; of each the one that waits longest. */
const waiting = new Map<string, Set<Socket>>();
/** When the first of the sockets was read in this turn, by `performance.now()`. */
let startMs: number | undefined;

/** Says for whom a socket is read from now on. */
export function setReader(socket: Socket, owner: string): void {
  const isDelayed = isWaiting(socket);
  if (isDelayed) takeOut(socket);
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
  for (let socket = findNext(); socket !== undefined && hasTime(); socket = findNext()) {
    takeOut(socket);
    socket.emit("readable");
    if (!isWaiting(socket)) socket.emit(hasReadAll);
  }
}

const ownerOf = (socket: Socket): string => owners.get(socket) ?? "";

const isWaiting = (socket: Socket): boolean => waiting.get(ownerOf(socket))?.has(socket) === true;

function delay(socket: Socket): void {
  waiting.getOrInsertComputed(ownerOf(socket), () => new Set()).add(socket);
}

function findNext(): Socket | undefined {
  const [sockets] = waiting.values();
  const [socket] = sockets ?? [];
  return socket;
}

/** The owner of the socket comes last then. */
function takeOut(socket: Socket): void {
  const owner = ownerOf(socket);
  const sockets = waiting.get(owner);
  waiting.delete(owner);
  sockets?.delete(socket);
  if (sockets !== undefined && sockets.size > 0) waiting.set(owner, sockets);
}
