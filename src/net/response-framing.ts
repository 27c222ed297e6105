import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import type { DiagnosticsChannel } from "undici";
import { urlForMessage } from "./http-url.ts";
import { ServiceError } from "../model/errors.ts";
import { undici } from "./undici.ts";
import { invalidResponseError, maxHeaderBytes } from "./upstream-error.ts";
import type { Readable } from "node:stream";

/** Bytes of status line, header, interim responses and trailers together. */
const maxFramingBytes = 4 * maxHeaderBytes;

/** For the lines around chunks (RFC 9112 §7.1), which a server may make as short as a byte: `00000001`, CR LF twice. */
const framingPerBodyByte = 16;

/** A response of which bytes are received. */
interface Incoming {
  request: SentHeaders["request"];
  socket: Socket;
  /** Bytes of the socket that were parsed before it. */
  start: number;
  bodyBytes: number;
}

/** The sockets that are limited, each with the response that it receives now. */
const receiving = new WeakMap<Socket, Incoming | null>();
const byRequest = new WeakMap<object, Incoming>();

/**
 * Limits the bytes of responses on `socket` that are not their bodies: reason phrases, empty lines, spaces, chunk extensions. With far more of them
 * than of the body, the request fails with ServiceError `upstream_invalid`. undici itself limits only the names and values of fields.
 */
export function limitFraming(socket: Socket): void {
  receiving.set(socket, null);
}

subscribe("undici:client:sendHeaders", (message) => {
  const { request, socket } = message as SentHeaders;
  const previous = receiving.get(socket);
  if (previous === undefined) return;
  // undici's own listener, which parses what was read, is called before this one.
  if (previous === null) socket.on("readable", () => checkFraming(socket, receiving.get(socket)));
  const incoming = { request, socket, start: parsedBytes(socket), bodyBytes: 0 };
  receiving.set(socket, incoming);
  byRequest.set(request, incoming);
});

subscribe("undici:request:bodyChunkReceived", (message) => {
  const { request, chunk } = message as DiagnosticsChannel.RequestBodyChunkReceivedMessage;
  const incoming = byRequest.get(request);
  if (incoming !== undefined) incoming.bodyBytes += chunk.length;
});

const failed = new WeakMap<object, { isReused: boolean; hasEnded: boolean }>();

subscribe("undici:request:error", (message) => {
  const { request, error } = message as { request: object; error: unknown };
  const incoming = byRequest.get(request);
  // The reason of a signal may be anything.
  if (incoming === undefined || !(error instanceof Error)) return;
  failed.set(error, { isReused: incoming.start > 0, hasEnded: incoming.socket.readableEnded });
});

/**
 * Returns what an error says of the head of a response, if it breaks HTTP, which undici's code does not tell from a lost connection;
 * any other error as it is. `what` names the request.
 */
export function headError(error: unknown, what: string): unknown {
  const { HTTPParserError, ResponseContentLengthMismatchError, SocketError } = undici.errors;
  const { isReused, hasEnded } = (error instanceof Error ? failed.get(error) : undefined) ?? {};
  const isMismatch = error instanceof ResponseContentLengthMismatchError && hasEnded === false;
  if (isReused === true && (isMismatch || error instanceof HTTPParserError)) {
    const rule = "the connection had bytes after the response before";
    return new ServiceError("upstream_unreachable", `${what}: ${rule}`, { cause: error });
  }
  if (isMismatch) return invalidResponseError(what, "the response states its length twice, or in two ways", error);
  // undici takes no 100 (Continue).
  if (!(error instanceof SocketError && error.message === "bad response")) return error;
  return invalidResponseError(what, "the response is an interim one that was not asked for", error);
}

/** As it is published; undici's types leave the origin open. */
type SentHeaders = DiagnosticsChannel.ClientSendHeadersMessage & { request: { origin: string } };

function checkFraming(socket: Socket, incoming: Incoming | null | undefined): void {
  if (!incoming) return;
  const { request, start, bodyBytes } = incoming;
  const bytes = parsedBytes(socket) - start - bodyBytes;
  const most = maxFramingBytes + framingPerBodyByte * bodyBytes;
  if (bytes <= most) return;
  const { method, origin, path } = request;
  const what = `${method} ${urlForMessage(new URL(path, origin))}`;
  const rule = `the response has over ${most} bytes besides the ${bodyBytes} of its body`;
  socket.destroy(invalidResponseError(what, rule));
}

function parsedBytes({ bytesRead, readableLength }: Socket): number {
  return bytesRead - readableLength;
}

/** Servers send one or two. */
const maxInterimResponses = 100;

/**
 * Returns an `onInfo` for a request of undici, named by `what`: it makes the request fail with ServiceError `upstream_invalid`
 * after so many interim responses (RFC 9110 §15.2). Each starts the wait for the header again, and none counts as received.
 */
export function limitInterimResponses(what: string): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count <= maxInterimResponses) return;
    throw invalidResponseError(what, `it got over ${maxInterimResponses} interim responses`);
  };
}

/** Bytes of a body that may wait for their reader, beyond those of one read: chunks of one byte take over a hundred each. */
export const maxWaitingBytes = 4 * 1024;

/** Yields the chunks of a body, joined if several wait: a server can make them as short as a byte, and each one takes its reader 10 µs. */
export async function* joinedChunks(source: Readable): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of source as AsyncIterable<Buffer>) {
    const others = source.readableLength > 0 ? (source.read(source.readableLength) as Buffer | null) : null;
    yield others === null ? chunk : Buffer.concat([chunk, others]);
  }
}
