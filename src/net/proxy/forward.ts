import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { guardedOptions } from "../addresses/guarded-connector.ts";
import { limitInterimResponses, joinedChunks, maxWaitingBytes } from "../response-framing.ts";
import { findUrlProblem, urlForMessage } from "../http-url.ts";
import { invalidResponseError } from "../upstream-error.ts";
import { undici } from "../undici.ts";
import { type Admitted, fieldsOf, type ProxyLimits, type Refusal, refusalOf, toProxyError } from "./admission.ts";

/**
 * Forwards a request in absolute-form (RFC 9112 §3.2.2) for an http URL, with its end-to-end fields and its
 * body, and its response; redirects are left to the client. Records a failure in the run. Never rejects.
 */
export async function forward(
  { request, run, signal }: Admitted,
  response: ServerResponse,
  { guard, idleTimeoutMs }: ProxyLimits,
): Promise<void> {
  const { socket } = request;
  const url = URL.parse(/^http:/i.test(request.url ?? "") ? (request.url ?? "") : "");
  if (url === null || findUrlProblem(url) !== undefined) {
    refuse(response, { status: 400, text: "the request's target must be an absolute http URL" });
    return;
  }
  const what = `${request.method} ${urlForMessage(url)}`;
  const upstream = new undici.Client(url.origin, {
    ...guardedOptions(guard, idleTimeoutMs, { owner: run.name, signal }),
    pipelining: 0,
  });
  try {
    const received = await upstream.request({
      method: request.method ?? "GET",
      path: url.pathname + url.search,
      headers: endToEndFields(request.rawHeaders, ["host", "expect"]),
      body: bodyOf(request, () => run.measure(socket)),
      responseHeaders: "raw",
      onInfo: limitInterimResponses(what),
      highWaterMark: maxWaitingBytes,
    });
    writeHead(response, received, what);
    endIfUnread(response, idleTimeoutMs);
    for await (const chunk of joinedChunks(received.body)) {
      const isWritable = response.write(chunk);
      run.measure(socket);
      if (!isWritable) await once(response, "drain", { signal });
    }
    response.end();
  } catch (error) {
    if (signal.aborted) return;
    const failure = toProxyError(error, what, idleTimeoutMs);
    run.fail(failure);
    if (response.headersSent) socket.destroy();
    else refuse(response, refusalOf(failure));
  } finally {
    await upstream.destroy();
  }
}

/** Responds with a refusal. */
export function refuse(response: ServerResponse, refusal: Refusal): void {
  response.writeHead(refusal.status, fieldsOf(refusal)).end(`${refusal.text}\n`);
}

/** Returns the request's body; null if it has none, which its framing says (RFC 9112 §6.3). */
function bodyOf(request: IncomingMessage, onChunk: () => void): Readable | null {
  const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
  if (coding === undefined && Number(length) === 0) return null;
  return Readable.from(chunksOf(request, onChunk));
}

async function* chunksOf(request: IncomingMessage, onChunk: () => void) {
  for await (const chunk of joinedChunks(request)) {
    onChunk();
    yield chunk;
  }
}

function writeHead(response: ServerResponse, { statusCode, headers }: Dispatcher.ResponseData, what: string): void {
  // `responseHeaders: "raw"` makes them a list, which undici's types do not say.
  const raw = headers as unknown as string[];
  const isChunked = raw.some((name, i) => i % 2 === 0 && /^transfer-encoding$/i.test(name));
  const fields = endToEndFields(raw, isChunked ? ["content-length"] : []);
  try {
    response.writeHead(statusCode, [...fields, "connection", "close"]);
  } catch (error) {
    throw invalidResponseError(what, "the response's header has invalid values", error);
  }
}

/** Closes the connection if its client does not read the response for the idle time. */
function endIfUnread(response: ServerResponse, idleTimeoutMs: number): void {
  response.setTimeout(idleTimeoutMs, () => {
    if (response.writableNeedDrain) response.destroy();
  });
}

/** Fields of one connection, which a proxy does not forward (RFC 9110 §7.6.1, §11.7). */
const hopByHop: readonly string[] = (
  "connection keep-alive proxy-authenticate proxy-authentication-info proxy-authorization proxy-connection te trailer " +
  "transfer-encoding upgrade"
).split(" ");

/**
 * Returns the fields of a message that a proxy forwards, in the same form: names and values in turn, as in
 * `IncomingMessage.rawHeaders`. Drops those of the connection, those that `Connection` names, and `more`
 * (names in lower case).
 */
function endToEndFields(raw: readonly string[], more: readonly string[]): string[] {
  const lines = fieldLines(raw);
  const options = lines
    .filter(({ name }) => name === "connection")
    .flatMap(({ line }) => line[1].split(","))
    .map((option) => option.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...options, ...more]);
  return lines.filter(({ name }) => !dropped.has(name)).flatMap(({ line }) => line);
}

function fieldLines(raw: readonly string[]) {
  return raw
    .map((name, i) => ({ name: name.toLowerCase(), line: [name, raw[i + 1] ?? ""] as const }))
    .filter((_line, i) => i % 2 === 0);
}
