import { Duplex, pipeline, type Readable } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { ServiceError, systemErrorCode } from "../../model/errors.ts";
import { shorten } from "../http-url.ts";
import { joinedChunks } from "../response-framing.ts";
import { invalidResponseError } from "../upstream-error.ts";

/** The codings that the client accepts and decodes. */
export const acceptEncoding = "gzip, deflate, br, zstd";

type Decoder = () => Duplex;

/** More layers are only useful to hide a decompression bomb. */
const maxCodings = 2;

const decoderByCoding: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", () => Duplex.from(inflate)],
  ["br", createBrotliDecompress],
  // RFC 9659 §3: the window is at most 8 MB.
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } })],
]);

/** Codings that are registered (RFC 9110 §18.6), but neither accepted nor decoded. */
const otherCodings: ReadonlySet<string> = new Set("compress x-compress aes128gcm exi pack200-gzip dcb dcz".split(" "));

/**
 * Returns the decoders for a `Content-Encoding` field (RFC 9110 §8.4), in the order to apply them. Ignores what is
 * no coding, such as "utf-8" or "aws-chunked", as browsers do. `what` names the request in messages.
 *
 * @throws ServiceError `upstream_invalid` for a coding that is not accepted, and for more than 2
 */
export function createDecoders(contentEncoding: string | undefined, what: string): Decoder[] {
  const names = (contentEncoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => decoderByCoding.has(name) || otherCodings.has(name));
  if (names.length > maxCodings) {
    const rule = `the response has ${names.length} content codings, the limit is ${maxCodings}`;
    throw invalidResponseError(what, rule);
  }
  return names.toReversed().map((name) => {
    const decoder = decoderByCoding.get(name);
    if (decoder !== undefined) return decoder;
    const value = JSON.stringify(shorten(name, 40));
    const rule = `the response's content coding must be one of ${acceptEncoding}, not ${value}`;
    throw invalidResponseError(what, rule);
  });
}

export interface Decoding {
  decoded: Readable;
  /** Returns the first error, of the connection or of a decoder; undefined or null if there is none. */
  error(): unknown;
}

/**
 * Decodes `body` with backpressure to the socket. Each coded layer may have about twice `maxBytes`,
 * more is an `upstream_invalid` error, and so is a damaged layer; one that is cut off is `upstream_unreachable`. The reader of `decoded` limits its bytes.
 */
export function decode(body: Readable, decoders: readonly Decoder[], maxBytes: number, what: string): Decoding {
  let codingFailure: ServiceError | undefined;
  const limit = 2 * maxBytes + 1024;
  const tooLargeError = () => {
    const rule = `the response is larger than ${limit} bytes before decoding`;
    return (codingFailure ??= invalidResponseError(what, rule));
  };
  const decodings = decoders.map((createDecoder) => createDecoder());
  for (const decoding of decodings) {
    decoding.on("error", (error: Error) => {
      if (body.errored !== null) return;
      codingFailure ??= error instanceof ServiceError ? error : codingError(what, error);
    });
  }
  const stages = decodings.flatMap((decoding) => [limitBytes(limit, tooLargeError), decoding]);
  if (stages.length > 0) pipeline([body, ...stages], () => {});
  return { decoded: decodings.at(-1) ?? body, error: () => codingFailure ?? body.errored };
}

/** A coding that ends too early is that of a response that was cut off before it was stored or sent: a retry may get all of it. */
function codingError(what: string, cause: Error): ServiceError {
  if (systemErrorCode(cause) !== "Z_BUF_ERROR") {
    return invalidResponseError(what, "the response's content coding is damaged", cause);
  }
  const message = `${what}: the response is cut off within its content coding`;
  return new ServiceError("upstream_unreachable", message, { cause });
}

function limitBytes(maxBytes: number, tooLargeError: () => ServiceError) {
  return async function* (source: Readable): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of joinedChunks(source)) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLargeError();
      yield chunk;
    }
  };
}

/** Decodes `deflate`: the zlib format (RFC 1950), or raw DEFLATE as some servers send (RFC 9110 §8.4.1.2). */
async function* inflate(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const isZlib = ((first.value[0] ?? 0) & 0x0f) === 8;
  async function* whole() {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  }
  const inflated = isZlib ? createInflate() : createInflateRaw();
  pipeline(whole, inflated, () => {});
  yield* inflated;
}
