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

/** The codings that the client asks for: to decode one takes little more memory than what has been read of it. */
export const acceptEncoding = "gzip, deflate, zstd";

/** @param what The request, for an error. */
type Decoder = (what: string) => Duplex;

interface Coding {
  /** In the order to apply them. */
  decoders: Decoder[];
  /** Whether a few bytes may take 4 MiB of memory (of two codings 8 MiB), outside of the heap, before anything is read. */
  isLarge: boolean;
}

/** More layers are only useful to hide a decompression bomb. */
const maxCodings = 2;

const decoderByCoding: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", () => decodeBy((byte) => ((byte & 0x0f) === 8 ? createInflate() : createInflateRaw()))],
  ["br", (what) => decodeBy((byte) => createBrotliDecoder(byte, what))],
  // RFC 9659 §3: the window is at most 8 MB.
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } })],
]);

/** Codings that are registered (RFC 9110 §18.6), but neither accepted nor decoded. */
const otherCodings: ReadonlySet<string> = new Set("compress x-compress aes128gcm exi pack200-gzip dcb dcz".split(" "));

/**
 * Returns what a `Content-Encoding` field (RFC 9110 §8.4) says. Ignores what is
 * no coding, such as "utf-8" or "aws-chunked", as browsers do. `what` names the request in messages.
 *
 * @throws ServiceError `upstream_invalid` for a coding that is not accepted, and for more than 2
 */
export function readCoding(contentEncoding: string | undefined, what: string): Coding {
  const names = (contentEncoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => decoderByCoding.has(name) || otherCodings.has(name));
  if (names.length > maxCodings) {
    const rule = `the response has ${names.length} content codings, the limit is ${maxCodings}`;
    throw invalidResponseError(what, rule);
  }
  const decoders = names.toReversed().map((name) => {
    const decoder = decoderByCoding.get(name);
    if (decoder !== undefined) return decoder;
    const value = JSON.stringify(shorten(name, 40));
    const rule = `the response's content coding must be one of gzip, deflate, br, zstd, not ${value}`;
    throw invalidResponseError(what, rule);
  });
  // Brotli fills its window before it returns anything; zstd does so if a second decoder reads all and returns nothing.
  return { decoders, isLarge: names.includes("br") || (names.length > 1 && names.includes("zstd")) };
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
  const decodings = decoders.map((createDecoder) => createDecoder(what));
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

/**
 * Decodes with what `create` returns for the first byte: `deflate` is the zlib format (RFC 1950), or raw DEFLATE as some servers
 * send (RFC 9110 §8.4.1.2).
 */
function decodeBy(create: (firstByte: number) => Duplex): Duplex {
  return Duplex.from(async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const chunks = source[Symbol.asyncIterator]();
    const first = await chunks.next();
    if (first.done === true) return;
    const decoder = create(first.value[0] ?? 0);
    async function* whole() {
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => chunks };
    }
    pipeline(whole, decoder, () => {});
    yield* decoder;
  });
}

/** @throws ServiceError `upstream_invalid` if WBITS (RFC 7932 §9.1) is over 22: encoders take that for more than 4 MiB. */
function createBrotliDecoder(firstByte: number, what: string): Duplex {
  if ((firstByte & 0b1101) !== 0b1101) return createBrotliDecompress();
  throw invalidResponseError(what, "the response's window of Brotli is over 4 MiB, which is not decoded");
}
