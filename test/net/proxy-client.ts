import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type GuardedProxy, type GuardedProxyOptions, openGuardedProxy } from "../../src/net/proxy/guarded-proxy.ts";
import type { ProxyRun } from "../../src/net/proxy/run.ts";
import { MiB } from "./client.ts";

/** Opens a proxy that may connect to 127.0.0.1, closed after the test. */
export async function localProxy(options: GuardedProxyOptions = {}): Promise<GuardedProxy> {
  const proxy = await openGuardedProxy({
    allowNetworks: ["127.0.0.0/8"],
    idleTimeoutMs: 90_000,
    ...options,
  });
  onTestFinished(() => proxy.close());
  return proxy;
}

export function openRun(
  proxy: GuardedProxy,
  { signal = new AbortController().signal, maxBytes = 64 * MiB } = {},
): ProxyRun {
  return proxy.openRun({ signal, maxBytes });
}

/** Opens a proxy of its own with one run. */
export async function localRun(options: GuardedProxyOptions = {}): Promise<ProxyRun> {
  return openRun(await localProxy(options));
}

/** Returns the value of `Proxy-Authorization` for a run. */
function credentialOf({ url }: ProxyRun): string {
  const { username, password } = new URL(url);
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** Returns the run's credential as a field line. */
export const credentialLine = (run: ProxyRun): string => `Proxy-Authorization: ${credentialOf(run)}\r\n`;

interface ProxyRequest {
  method?: string;
  /** The request's target; default the URL in absolute-form. */
  path?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

interface ProxyAnswer {
  status: number;
  headers: IncomingMessage["headers"];
  rawHeaders: string[];
  text: string;
}

/** Sends a request in absolute-form through the proxy. Rejects if the connection is lost. */
export async function fetchThrough(
  run: ProxyRun,
  target: URL,
  { method = "GET", path = target.href, headers, body }: ProxyRequest = {},
): Promise<ProxyAnswer> {
  const sent = request({
    host: "127.0.0.1",
    port: new URL(run.url).port,
    method,
    path,
    agent: false,
    headers: { host: target.host, "proxy-authorization": credentialOf(run), ...headers },
  });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const text = Buffer.concat(await Array.fromAsync(response)).toString();
  const { statusCode: status = 0, headers: fields, rawHeaders } = response;
  return { status, headers: fields, rawHeaders, text };
}

/** Opens a TCP connection to the proxy, destroyed after the test. */
export async function connectToProxy({ url }: { url: string }): Promise<Socket> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Sends bytes as they are. Returns all that the proxy sends until it closes the connection. */
export async function sendRaw(run: ProxyRun, bytes: string | Buffer): Promise<string> {
  const socket = await connectToProxy(run);
  socket.write(bytes);
  return readAll(socket);
}

/** Returns everything that arrives until the connection is closed, however that happens. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!socket.destroyed) await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks).toString();
}

/** Sends CONNECT. Returns the response's status, its text (if refused) and the connection. */
export async function openTunnel(
  run: ProxyRun,
  authority: string,
  fields = credentialLine(run),
): Promise<{ status: number; text: string; socket: Socket }> {
  const socket = await connectToProxy(run);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${fields}\r\n`);
  let head = "";
  while (!head.includes("\r\n\r\n")) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) {
      await new Promise((resolve) => socket.once("readable", resolve).once("close", resolve));
      if (socket.destroyed && socket.readableLength === 0) break;
    } else {
      head += chunk.toString();
    }
  }
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
  if (status !== 200) return { status, text: head + (await readAll(socket)), socket };
  const rest = head.slice(head.indexOf("\r\n\r\n") + 4);
  if (rest !== "") socket.unshift(rest);
  return { status, text: "", socket };
}
