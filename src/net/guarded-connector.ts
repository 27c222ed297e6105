import type { LookupAddress } from "node:dns";
import type { LookupFunction, Socket } from "node:net";
import { callbackify } from "node:util";
import { buildConnector } from "undici";
import { ServiceError } from "../errors.ts";
import type { AddressGuard } from "./address-guard.ts";
import type { ReadBufferPool } from "./read-buffer-pool.ts";

/**
 * Connector for undici that opens sockets only to addresses that `guard` allows. The check comes
 * before there is a socket, for names and literal addresses alike; the socket then connects to the
 * checked addresses without a second lookup (Happy Eyeballs, RFC 8305, among them), and where it
 * ended up is checked once more. TLS takes the name for SNI and for the certificate (RFC 9110 §4.3.4).
 */
export function createGuardedConnector(
  guard: AddressGuard,
  connectTimeoutMs: number,
  { onread }: ReadBufferPool,
): buildConnector.connector {
  async function openSocket(target: buildConnector.Options): Promise<Socket> {
    const addresses = await guard.resolve(target.hostname);
    const socket = await connectTo(addresses, target, { timeout: connectTimeoutMs, onread });
    const fault = remoteFault(guard, target.hostname, socket.remoteAddress);
    if (fault === undefined) return socket;
    socket.destroy();
    throw fault;
  }

  return (target, callback) => {
    callbackify(openSocket)(target, (error, socket) => {
      if (error) callback(error, null);
      else callback(null, socket);
    });
  };
}

function connectTo(
  addresses: readonly LookupAddress[],
  target: buildConnector.Options,
  options: buildConnector.BuildOptions,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const connect = buildConnector({
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

/** A connection to 0.0.0.0, where that network is opened, ends at loopback, which may not be. */
function remoteFault(guard: AddressGuard, hostname: string, address: string | undefined) {
  if (address !== undefined) return guard.refusal(hostname, address);
  return new ServiceError("upstream_unreachable", `${hostname} closed the connection at once`);
}
