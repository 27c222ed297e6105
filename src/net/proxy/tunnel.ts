import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ServiceError } from "../../model/errors.ts";
import { openGuardedSocket } from "../addresses/guarded-connector.ts";
import { type Admitted, fieldsOf, type ProxyLimits, type Refusal, refusalOf, toProxyError } from "./admission.ts";

/**
 * Serves a CONNECT request (RFC 9110 §9.3.6): connects to its target and relays bytes both ways until both
 * sides have ended, one is lost, or neither has sent any for the idle time. `head` is what the client has
 * sent after the request. Records a failure in the run. Never rejects.
 */
export async function openTunnel(
  { request, run, signal }: Admitted,
  head: Buffer,
  { guard, idleTimeoutMs }: ProxyLimits,
): Promise<void> {
  const { socket } = request;
  const target = parseAuthority(request.url ?? "");
  if (target === undefined) {
    refuseTunnel(socket, { status: 400, text: "the request's target must be host:port" });
    return;
  }
  const what = `CONNECT ${target.host}`;
  try {
    const options = { owner: run.name, signal, allowHalfOpen: true };
    const upstream = await openGuardedSocket(guard, target, idleTimeoutMs, options);
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    upstream.write(head);
    relay(socket, upstream, {
      idleTimeoutMs,
      isAwaited: head.length > 0,
      onBytes: () => run.measure(socket),
      onFailure: (error) => run.fail(toProxyError(error, what, idleTimeoutMs)),
    });
  } catch (error) {
    if (signal.aborted) return;
    const failure = toProxyError(error, what, idleTimeoutMs);
    run.fail(failure);
    refuseTunnel(socket, refusalOf(failure));
  }
}

/** Refuses a CONNECT request, for which Node has no response object. */
export function refuseTunnel(socket: Socket, refusal: Refusal): void {
  const body = `${refusal.text}\n`;
  const fields = { ...fieldsOf(refusal), "content-length": Buffer.byteLength(body) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join("")}\r\n${body}`);
  socket.destroySoon();
}

/**
 * Parses the authority-form `host:port` (RFC 9112 §3.2.3). The host is normalized as in a URL, so that the
 * guard sees the address that an odd spelling (`0x7f.1`) means. Returns undefined for any other form.
 */
function parseAuthority(text: string) {
  const [, name = "", digits = ""] = /^([^:/?#@\\\s[\]]+|\[[^/?#@\\\s[\]]+\]):(\d{1,5})$/.exec(text) ?? [];
  const url = URL.parse(`http://${name}/`);
  const port = Number(digits);
  if (url === null || port > 65_535) return undefined;
  const { hostname } = url;
  return { protocol: "tcp:", hostname, host: `${hostname}:${port}`, port: `${port}` };
}

interface RelayOptions {
  idleTimeoutMs: number;
  /** Whether bytes of the client await a reply of the server. */
  isAwaited: boolean;
  /** Called after bytes have passed. */
  onBytes: () => void;
  /** Called when the server is lost or silent while the client awaits its reply. */
  onFailure: (error: unknown) => void;
}

/**
 * Relays bytes both ways, with back-pressure and half-closes. The signal that `server` was opened with
 * destroys it together with `client`.
 */
function relay(client: Socket, server: Socket, options: RelayOptions): void {
  const { idleTimeoutMs, onBytes, onFailure } = options;
  let { isAwaited } = options;
  client.pipe(server);
  server.pipe(client);
  client.on("data", () => {
    isAwaited = true;
    onBytes();
  });
  server.on("data", () => {
    isAwaited = false;
    onBytes();
  });
  server.on("error", (error) => {
    if (isAwaited && !client.destroyed) onFailure(error);
  });
  // All bytes pass through the client's socket, so its idle time is that of both.
  client.setTimeout(idleTimeoutMs, () => {
    if (isAwaited) onFailure(new ServiceError("upstream_timeout", `a tunnel had no bytes for ${idleTimeoutMs} ms`));
    client.destroy();
  });
  server.on("close", () => {
    if (server.readableEnded) client.destroySoon();
    else client.destroy();
  });
}
