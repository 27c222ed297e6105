import sniffHtmlEncoding from "html-encoding-sniffer";
import { encodingNamed } from "../../../parsers/text.ts";

/** The bytes per chunk of text; the first chunk decides the encoding. */
const chunkBytes = 65_536;

/** Of UTF-8: a UTF-16 code unit is encoded in three bytes at most, and so in three characters of a `PageText`. */
export const maxBytesPerUnit = 3;

/**
 * The text of an HTML page, of which only the ASCII characters are sure to be decoded: in UTF-8 each other
 * character still is its bytes, one character a byte. It is scanned faster than decoded text, and little
 * of a page is kept.
 *
 * The encoding is that of a byte order mark, else of `contentType`, else of a `<meta>` or an XML
 * declaration, else UTF-8. A `<meta>` counts if it is in the head and in the first chunk: browsers too
 * accept it after the 1,024 bytes of HTML §13.2.3.2. The encoding "replacement", which cannot be decoded,
 * is read as UTF-8.
 */
export class PageText {
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #contentType: string | null;
  #isUtf8 = true;

  constructor(body: AsyncIterable<Uint8Array>, contentType: string | null) {
    this.#body = body;
    this.#contentType = contentType;
  }

  /**
   * Yields the text in chunks of 64 KiB (the last may be shorter), however the bytes of the body are cut; a
   * character may be cut between two chunks. Rejects only with the errors of the body.
   */
  async *chunks(): AsyncGenerator<string, void, undefined> {
    let decoder: Decoder | undefined;
    for await (const chunk of rechunk(this.#body)) {
      decoder ??= this.#createDecoder(chunk);
      yield decoder.decode(chunk, { stream: true });
    }
    const rest = decoder?.decode() ?? "";
    if (rest !== "") yield rest;
  }

  /** Decodes a part that starts and ends at ASCII characters. Invalid bytes become U+FFFD. */
  decode(part: string): string {
    return this.#isUtf8 ? decodeUtf8(part) : part;
  }

  #createDecoder(start: Uint8Array): Decoder {
    const encoding = encodingOf(start, this.#contentType);
    this.#isUtf8 = encoding === "UTF-8";
    return this.#isUtf8 ? createByteDecoder() : new TextDecoder(encoding);
  }
}

type Decoder = Pick<TextDecoder, "decode">;

/** Creates a decoder that makes a character of each byte, without a byte order mark of UTF-8 at the start. */
function createByteDecoder() {
  let isStart = true;
  return {
    decode(chunk: Uint8Array = new Uint8Array()): string {
      const text = bufferOf(chunk).toString("latin1");
      const read = isStart ? text.replace(/^\xEF\xBB\xBF/, "") : text;
      isStart = false;
      return read;
    },
  };
}

function decodeUtf8(bytes: string): string {
  return /[\x80-\xff]/.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Yields the same bytes in arrays of `chunkBytes`; cuts larger ones without copying. */
async function* rechunk(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  for await (const chunk of body) {
    let rest = chunk;
    while (waitingBytes + rest.length >= chunkBytes) {
      const missing = chunkBytes - waitingBytes;
      const part = rest.subarray(0, missing);
      yield waiting.length === 0 ? part : Buffer.concat([...waiting, part], chunkBytes);
      rest = rest.subarray(missing);
      waiting = [];
      waitingBytes = 0;
    }
    if (rest.length === 0) continue;
    waiting.push(rest);
    waitingBytes += rest.length;
  }
  if (waitingBytes > 0) yield Buffer.concat(waiting, waitingBytes);
}

/** Returns the name of the page's encoding, by its first bytes and its type. */
function encodingOf(start: Uint8Array, contentType: string | null): string {
  const label = charsetParameter(contentType);
  const encoding = sniffHtmlEncoding(start, {
    ...(label === null ? {} : { transportLayerEncodingLabel: label }),
    defaultEncoding: "UTF-8",
    // No `<meta>` is looked for if the type names an encoding.
    maxPrescanBytes: encodingNamed(label ?? "") === undefined ? headLength(start) : 0,
  });
  return decodable.get(encoding) ?? encoding;
}

/** Encodings that TextDecoder refuses, or that have another meaning in HTML, with what to use. */
const decodable: ReadonlyMap<string, string> = new Map([
  ["replacement", "UTF-8"],
  ["x-user-defined", "windows-1252"],
]);

function charsetParameter(contentType: string | null): string | null {
  const [, label] = /;\s*charset\s*=\s*["']?([^"';,\s]+)/i.exec(contentType?.slice(0, 500) ?? "") ?? [];
  return label ?? null;
}

/**
 * Returns how many bytes to scan for a `<meta>` with a charset: the sniffer is slow, and it is rarely
 * after the first 1,024 bytes.
 */
function headLength(start: Uint8Array): number {
  const bytes = bufferOf(start);
  const ends = ["</head", "</HEAD"].map((tag) => bytes.indexOf(tag)).filter((at) => at !== -1);
  const head = bytes.subarray(0, Math.min(bytes.length, ...ends));
  const last = Math.max(...["charset", "CHARSET", "Charset"].map((word) => head.lastIndexOf(word)));
  return Math.max(1_024, Math.min(head.length, last + 256));
}
