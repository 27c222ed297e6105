import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { randomUUID } from "node:crypto";
import { ServiceError } from "../../model/errors.ts";
import { AddressGuard } from "../addresses/address-guard.ts";
import { type HttpClientOptions, maxLookupMs } from "../http/http-client.ts";
import { type Admission, createAdmission, type ProxyLimits } from "./admission.ts";
import { forward, refuse } from "./forward.ts";
import { type ProxyRun, Run } from "./run.ts";
import { openTunnel, refuseTunnel } from "./tunnel.ts";
import { maxHeaderBytes } from "../upstream-error.ts";

export type GuardedProxy = Awaited<ReturnType<typeof openGuardedProxy>>;

export interface GuardedProxyOptions extends Pick<HttpClientOptions, "allowNetworks" | "lookup" | "onBlocked"> {
  /**
   * Longest wait for a lookup (at most 8 s), a connection, a header, or the next bytes in either direction;
   * accurate to about a second; default 10 s.
   */
  idleTimeoutMs?: number;
  /** Concurrent connections of one run; a further one gets 503. Default 64. */
  connectionsPerRun?: number;
  /** Concurrent connections of all local programs; a further one is closed. Default 1024. */
  maxConnections?: number;
}

/**
 * Opens a forward proxy on a random port of 127.0.0.1 for a local program; the guard checks every connection that it opens.
 * It takes CONNECT to any port, and requests in absolute-form for http URLs, one per connection. A request without the credential of an open run gets 407 and opens nothing; one to a
 * blocked address gets 403, one that fails 502 or 504. Any program of this machine can connect.
 *
 * @throws RangeError that names the first entry of `allowNetworks` that is not a network; what `listen` does
 */
export async function openGuardedProxy(options: GuardedProxyOptions) {
  const { idleTimeoutMs = 10_000, connectionsPerRun = 64, maxConnections = 1024 } = options;
  const guard = new AddressGuard({
    allowNetworks: options.allowNetworks,
    lookupTimeoutMs: Math.min(idleTimeoutMs, maxLookupMs),
    lookup: options.lookup,
    onBlocked: options.onBlocked,
  });
  const runs = new Map<string, Run>();
  const admit = createAdmission(runs, connectionsPerRun);
  const { server, sockets } = createProxyServer(idleTimeoutMs, maxConnections);
  serveRequests(server, admit, { guard, idleTimeoutMs });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    port,

    /**
     * Opens a run with a credential of its own, and closes it when `signal` is aborted. Only that limits its time: a server may send a byte
     * now and then. `maxBytes` limits the bytes of all connections in both directions, headers included.
     *
     * @throws ServiceError `unavailable` if the proxy is closed
     */
    openRun({ signal, maxBytes }: { signal: AbortSignal; maxBytes: number }): ProxyRun {
      if (!server.listening) throw new ServiceError("unavailable", "the proxy is closed");
      const name = randomUUID();
      const onAbort = () => run.close();
      const run = new Run({ name, port }, { maxBytes, maxConnections: connectionsPerRun }, () => {
        runs.delete(name);
        signal.removeEventListener("abort", onAbort);
      });
      runs.set(name, run);
      signal.addEventListener("abort", onAbort);
      if (signal.aborted) run.close();
      return run;
    },

    /** Closes all runs and sockets; safe to call twice. */
    async close(): Promise<void> {
      for (const run of runs.values()) run.close();
      const closed = server.listening ? once(server, "close") : undefined;
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function serveRequests(server: Server, admit: Admission, limits: ProxyLimits): void {
  server.on("request", (request, response) => {
    const admitted = admit(request);
    if (admitted === undefined) request.socket.destroy();
    else if ("run" in admitted) void forward(admitted, response, limits);
    else refuse(response, admitted);
  });
  server.on("connect", (request, _socket, head) => {
    const admitted = admit(request);
    if (admitted === undefined) request.socket.destroy();
    else if ("run" in admitted) void openTunnel(admitted, head, limits);
    else refuseTunnel(request.socket, admitted);
  });
}

function createProxyServer(idleTimeoutMs: number, maxConnections: number) {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: idleTimeoutMs,
    requestTimeout: Math.max(idleTimeoutMs, 60_000),
    connectionsCheckingInterval: Math.min(idleTimeoutMs, 1_000),
    noDelay: true,
  });
  server.maxConnections = maxConnections;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    // The errors of its connections concern the client alone; "close" follows.
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  return { server, sockets };
}
