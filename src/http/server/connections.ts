import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import { clientOf, type IsProxy } from "./contact.ts";

export interface ConnectionLimits {
  /** How long a response may wait for its client to read, milliseconds; accurate to a second. */
  sendTimeoutMs: number;
  /** Connections of one client at a time: of an IPv4 address or an IPv6 network of 64 bits. */
  maxConnectionsPerAddress: number;
  /** Connections in all. */
  maxConnections: number;
  /** What has no limit of its own, as it has the connections of many clients. */
  isProxy: IsProxy;
}

/**
 * Returns how many connections the process should accept: six tenths of the files that it may have open,
 * as responses and downloads need some too; Infinity if the system sets no limit.
 */
export function maxConnectionsOfProcess(): number {
  // Else the report looks names up.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files: { soft: number | "unlimited" } };
  };
  const { soft = "unlimited" } = userLimits?.open_files ?? {};
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Math.floor(soft * 0.6);
}

interface Connection {
  readonly socket: Socket;
  /** Undefined for loopback and proxies. */
  readonly client: string | undefined;
  /** When the connection last did not wait for its client, milliseconds of the monotonic clock. */
  since: number;
  /** Changes with every byte that the client takes, or sends while there is nothing to take. */
  progress: number;
}

const checkMs = 1_000;
/** A check that comes later than that: this process did not run meanwhile, which is no fault of clients. */
const lateMs = 2 * checkMs;

/**
 * Limits what clients can hold. A connection whose unsent bytes have not become fewer for
 * `sendTimeoutMs`, while this process ran, is reset. A connection over a limit takes the place of the one that has waited longest
 * for its client: for a request, or for the client to read. If all others are being served, it is closed
 * at once. Loopback and proxies have no limit of their own.
 */
export function limitConnections(
  server: Server,
  { sendTimeoutMs, maxConnectionsPerAddress, maxConnections, isProxy }: ConnectionLimits,
  log: FastifyBaseLogger | undefined,
): void {
  const connections = createConnections();
  let isFull = false;
  let checkedMs = performance.now();
  let timer: NodeJS.Timeout | undefined;

  /** Returns whether `group` may have one more, if need be after closing one. */
  function admits(group: ReadonlySet<Connection>, limit: number): boolean {
    if (group.size < limit) return true;
    isFull = true;
    const longest = findLongestWaiting(group);
    if (longest === undefined) return false;
    connections.close(longest);
    return true;
  }

  function check(): void {
    const now = performance.now();
    const suspendedMs = Math.max(0, now - checkedMs - lateMs);
    checkedMs = now;
    let stalled = 0;
    for (const connection of connections.all) {
      connection.since = Math.min(now, connection.since + suspendedMs);
      observe(connection, now);
      if (connection.socket.writableLength === 0 || now - connection.since < sendTimeoutMs) continue;
      connections.close(connection);
      stalled += 1;
    }
    if (stalled > 0) log?.info({ stalled }, "responses cut off: their clients read nothing");
    if (isFull) log?.warn({ open: connections.all.size }, "connection limit reached");
    isFull = false;
  }

  server.on("connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    const client = remoteAddress === undefined || isProxy(remoteAddress) ? undefined : clientOf(remoteAddress);
    if (!admits(connections.of(client), maxConnectionsPerAddress) || !admits(connections.all, maxConnections))
      socket.destroy();
    else connections.add({ socket, client, since: performance.now(), progress: 0 });
  });
  server.on("listening", () => {
    checkedMs = performance.now();
    timer = setInterval(check, checkMs).unref();
  });
  server.on("close", () => clearInterval(timer));
}

/** The open connections, all and by client. */
function createConnections() {
  const all = new Set<Connection>();
  const byClient = new Map<string, Set<Connection>>();

  function remove(connection: Connection): void {
    all.delete(connection);
    const { client = "" } = connection;
    const others = byClient.get(client);
    others?.delete(connection);
    if (others?.size === 0) byClient.delete(client);
  }

  return {
    all,
    of: (client = ""): ReadonlySet<Connection> => byClient.get(client) ?? none,
    add(connection: Connection): void {
      const { socket, client } = connection;
      all.add(connection);
      if (client !== undefined) byClient.getOrInsertComputed(client, () => new Set()).add(connection);
      socket.once("close", () => remove(connection));
    },
    close(connection: Connection): void {
      remove(connection);
      const { socket } = connection;
      // A reset also frees what the system has buffered.
      if (socket.writableLength > 0) socket.resetAndDestroy();
      else socket.destroy();
    },
  };
}

const none: ReadonlySet<Connection> = new Set();

function findLongestWaiting(group: ReadonlySet<Connection>): Connection | undefined {
  const now = performance.now();
  let longest: Connection | undefined;
  for (const connection of group) {
    observe(connection, now);
    // One that reads or sends at this moment stays; one without a request may have come in this moment.
    const mayBeClosed = connection.since < now || isIdle(connection.socket);
    if (mayBeClosed && connection.since < (longest?.since ?? Infinity)) longest = connection;
  }
  return longest;
}

function isIdle(socket: Socket): boolean {
  return socket.writableLength === 0 && pendingResponse(socket) === undefined;
}

/** Notes whether the connection has got further since it was last observed. */
function observe(connection: Connection, now: number): void {
  const { socket } = connection;
  const progress = socket.writableLength > 0 ? bytesSent(socket) : socket.bytesRead;
  if (progress === connection.progress && waitsForClient(socket)) return;
  connection.progress = progress;
  connection.since = now;
}

/** Returns the bytes that the system has taken, also of a write that is under way. */
function bytesSent(socket: Socket): number {
  // Undocumented; the time-outs of Node's own sockets read it too.
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize: number } | null };
  return socket.bytesWritten - socket.writableLength - (handle?.writeQueueSize ?? 0);
}

/** Returns whether bytes are unsent, or no whole request is there to be served. */
function waitsForClient(socket: Socket): boolean {
  return socket.writableLength > 0 || pendingResponse(socket)?.req.complete !== true;
}

/**
 * Returns the response of a connection that is to be sent next; undefined if there is none. Its request may
 * still be arriving. Node keeps it on the socket, and its own error handler reads it too.
 */
export function pendingResponse(socket: Socket): ServerResponse | undefined {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return response ?? undefined;
}
