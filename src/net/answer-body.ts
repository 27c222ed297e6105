import type { Readable } from "node:stream";
import { ServiceError } from "../errors.ts";
import type { Decoding } from "./content-coding.ts";
import type { Deadline } from "./deadline.ts";

interface AnswerBodyOptions {
  raw: Readable;
  decoding: Decoding;
  maxBytes: number;
  /** Ends with the body. */
  deadline: Deadline;
  /** Names the request in messages. */
  what: string;
  /** The error to reject with. */
  translate: (error: unknown) => unknown;
}

/** The body of an answer as `HttpAnswer` promises it: read once, bounded, closed when left. */
export function createAnswerBody(options: AnswerBodyOptions): AsyncIterable<Uint8Array> {
  const { raw, decoding, maxBytes, deadline, what, translate } = options;
  const { decoded } = decoding;
  const chunks: AsyncIterator<Uint8Array, undefined> = decoded[Symbol.asyncIterator]();
  let bytes = 0;
  const leave = () => {
    decoded.destroy();
    raw.destroy();
  };
  deadline.signal.addEventListener("abort", leave, { once: true });
  decoded.once("close", () => deadline.end());

  const iterator: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      try {
        const next = await chunks.next();
        if (next.done === true) return next;
        bytes += next.value.length;
        if (bytes > maxBytes) throw tooLarge(what, maxBytes);
        return next;
      } catch (error) {
        const failure = translate(decoding.failure() ?? error);
        leave();
        throw failure;
      }
    },
    // A generator would do nothing here before its first next().
    async return() {
      leave();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function tooLarge(what: string, maxBytes: number): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    `${what}: the answer is larger than the limit of ${maxBytes} bytes`,
  );
}
