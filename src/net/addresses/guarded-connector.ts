import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { LookupAddress } from "node:dns";
import type { LookupFunction, OnReadOpts, Socket } from "node:net";
import { callbackify } from "node:util";
import type { buildConnector, DiagnosticsChannel } from "undici";
import { ServiceError } from "../../model/errors.ts";
import { paceReads, setReader } from "../paced-sockets.ts";
import { limitFraming } from "../response-framing.ts";
import { maxHeaderBytes } from "../upstream-error.ts";
import { undici } from "../undici.ts";
import type { AddressGuard } from "./address-guard.ts";

/** Who makes a request: undici does not say for which one it opens a socket. */
export const requestOwner = new AsyncLocalStorage<string>();

const owners = new WeakMap<object, string>();

// A connection may be used again, by another owner.
subscribe("undici:request:create", (message) => {
  const owner = requestOwner.getStore();
  if (owner !== undefined) owners.set((message as DiagnosticsChannel.RequestCreateMessage).request, owner);
});

subscribe("undici:client:sendHeaders", (message) => {
  const { request, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage;
  const owner = owners.get(request);
  if (owner !== undefined) setReader(socket, owner);
});

/** How long a connection without a request stays open if its server asks for longer, milliseconds; without being asked it is 4 s. */
const maxKeepAliveMs = 15_000;

/** Options of the sockets themselves, as `net.connect` has them. */
interface SocketOptions {
  /** For whom; default: the owner of the request that needs the socket. */
  readonly owner?: string;
  /** Where reads go; default a new buffer each. */
  readonly onread?: OnReadOpts;
  /** Destroys the socket when it is aborted, also while it connects. */
  readonly signal?: AbortSignal;
  /** Whether the socket stays writable after the server has ended its side; default false. */
  readonly allowHalfOpen?: boolean;
}

/**
 * Returns the options of every client of undici: it opens its sockets as `openGuardedSocket` does, limits the framing of their
 * responses and how long they are parsed in one turn of the event loop, uses HTTP/1.1, and waits `timeoutMs` at most for a connection, a response's header, or its next bytes.
 */
export function guardedOptions(guard: AddressGuard, timeoutMs: number, socketOptions: SocketOptions) {
  return {
    connect: createGuardedConnector(guard, timeoutMs, socketOptions),
    allowH2: false,
    keepAliveMaxTimeout: maxKeepAliveMs,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: maxHeaderBytes,
  };
}

function createGuardedConnector(
  guard: AddressGuard,
  connectTimeoutMs: number,
  { owner, onread, signal }: SocketOptions,
): buildConnector.connector {
  const options = { ...(onread && { onread }), ...(signal && { signal }) };
  async function openSocket(target: buildConnector.Options): Promise<Socket> {
    const reader = owner ?? requestOwner.getStore() ?? "";
    const socket = await openGuardedSocket(guard, target, connectTimeoutMs, { ...options, owner: reader });
    setReader(socket, reader);
    return socket;
  }
  return (target, callback) => {
    callbackify(openSocket)(target, (error, socket) => {
      if (error) return callback(error, null);
      limitFraming(socket);
      paceReads(socket);
      return callback(null, socket);
    });
  };
}

/**
 * Connects to `target` if `guard` allows its addresses. Names and literal addresses are checked before a
 * socket is created; it then connects to the checked addresses without a second lookup (with Happy
 * Eyeballs, RFC 8305), and the address that it has reached is checked again. TLS uses the name for SNI and
 * to verify the certificate (RFC 9110 §4.3.4).
 *
 * @throws what `guard.resolve` does, errors of undici and the system, the reason of `signal`
 */
export async function openGuardedSocket(
  guard: AddressGuard,
  target: buildConnector.Options,
  connectTimeoutMs: number,
  { owner, ...options }: SocketOptions,
): Promise<Socket> {
  const addresses = await guard.resolve(target.hostname, owner);
  options.signal?.throwIfAborted();
  const socket = await connectTo(addresses, target, { timeout: connectTimeoutMs, ...options });
  const problem = findRemoteProblem(guard, target.hostname, socket.remoteAddress);
  if (problem === undefined) return socket;
  socket.destroy();
  throw problem;
}

function connectTo(
  addresses: readonly LookupAddress[],
  target: buildConnector.Options,
  options: buildConnector.BuildOptions,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const connect = undici.buildConnector({
    ...options,
    lookup: pinnedLookup(addresses),
    autoSelectFamily: true,
    allowH2: false,
    maxCachedSessions: 0,
  });
  connect(target, (...[error, socket]) => {
    if (error === null) resolve(socket);
    else reject(error);
  });
  return promise;
}

function pinnedLookup(addresses: readonly LookupAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** The system connects 0.0.0.0 to loopback, which may be blocked where 0.0.0.0 is allowed. */
function findRemoteProblem(guard: AddressGuard, hostname: string, address: string | undefined) {
  if (address !== undefined) return guard.findProblem(hostname, address);
  return new ServiceError("upstream_unreachable", `${hostname} closed the connection at once`);
}
