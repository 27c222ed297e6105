import { Duplex, pipeline, type Readable, Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { ServiceError } from "../errors.ts";
import { shorten } from "./http-url.ts";

/** What the client asks for; nothing else is undone. */
export const acceptEncoding = "gzip, deflate, br, zstd";

export type Decoder = () => Duplex;

/** More layers have no use but to hide a bomb. */
const maxCodings = 2;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", () => Duplex.from(inflate)],
  ["br", createBrotliDecompress],
  // RFC 9659 §3: no window above 8 MB.
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } })],
]);

/**
 * The decoders that undo a `Content-Encoding` field (RFC 9110 §8.4), in the order to apply them.
 *
 * @throws ServiceError `upstream_invalid` for an unknown coding and for more than 2
 */
export function decodersOf(contentEncoding: string | undefined, what: string): Decoder[] {
  const names = (contentEncoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length > maxCodings) {
    const rule = `at most ${maxCodings} content codings are undone, the answer has ${names.length}`;
    throw new ServiceError("upstream_invalid", `${what}: ${rule}`);
  }
  return names.toReversed().map((name) => {
    const decoder = decoders.get(name);
    if (decoder !== undefined) return decoder;
    const rule = `its content coding must be one of ${acceptEncoding}, not ${JSON.stringify(shorten(name, 40))}`;
    throw new ServiceError("upstream_invalid", `${what}: ${rule}`);
  });
}

export interface Decoding {
  decoded: Readable;
  /** The first thing that went wrong, on the connection or while decoding. */
  failure(): unknown;
}

/**
 * Undoes the codings of `body`, with backpressure to the socket. No layer before the last may hold
 * more than about twice `maxBytes`; who reads `decoded` counts that one. A damaged layer fails with
 * `upstream_invalid`.
 */
export function decode(
  body: Readable,
  coded: readonly Decoder[],
  maxBytes: number,
  what: string,
): Decoding {
  let fault: ServiceError | undefined;
  const stages = coded.flatMap((createDecoder) => [
    createByteLimit(2 * maxBytes + 1024, what),
    createDecoder(),
  ]);
  for (const stage of stages) {
    stage.on("error", (error: Error) => {
      if (body.errored === null) fault ??= codingFault(what, error);
    });
  }
  if (stages.length > 0) pipeline([body, ...stages], () => {});
  return { decoded: stages.at(-1) ?? body, failure: () => fault ?? body.errored };
}

function codingFault(what: string, cause: Error): ServiceError {
  if (cause instanceof ServiceError) return cause;
  const rule = "the answer's content coding is damaged or cut short";
  return new ServiceError("upstream_invalid", `${what}: ${rule}`, { cause });
}

function createByteLimit(maxBytes: number, what: string): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes <= maxBytes) return done(null, chunk);
      const rule = `the answer is larger than ${maxBytes} bytes while still encoded`;
      return done(new ServiceError("upstream_invalid", `${what}: ${rule}`));
    },
  });
}

/** `deflate` is the zlib format (RFC 1950); some servers send bare DEFLATE (RFC 9110 §8.4.1.2). */
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
