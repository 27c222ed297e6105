import sniffHtmlEncoding from "html-encoding-sniffer";
import { encodingNamed } from "../../../parsers/text.ts";

/** The first bytes of a page, which decide its encoding. */
const startBytes = 65_536;

/** Of UTF-8: a UTF-16 code unit is encoded in three bytes at most, and so in three characters of a `PageText`. */
export const maxBytesPerUnit = 3;

/**
 * The text of an HTML page, of which only the ASCII characters are sure to be decoded: in UTF-8 each other
 * character still is its bytes, one character a byte. It is scanned faster than decoded text, and little
 * of a page is kept.
 *
 * The encoding is that of a byte order mark, else of `contentType`, else of a `<meta>` or an XML
 * declaration, else UTF-8. A `<meta>` counts if it is in the head and in the first 64 KiB: browsers too
 * accept it after the 1,024 bytes of HTML §13.2.3.2. The encoding "replacement", which cannot be decoded,
 * is read as UTF-8.
 */
export class PageText {
  readonly text: string;
  readonly #isUtf8: boolean;

  constructor(bytes: Uint8Array, contentType: string | null) {
    const encoding = encodingOf(bytes.subarray(0, startBytes), contentType);
    this.#isUtf8 = encoding === "UTF-8";
    this.text = this.#isUtf8 ? bytesAsText(bytes) : new TextDecoder(encoding).decode(bytes);
  }

  /** Decodes a part that starts and ends at ASCII characters. Invalid bytes become U+FFFD. */
  decode(part: string): string {
    return this.#isUtf8 ? decodeUtf8(part) : part;
  }
}

/** Makes a character of each byte, without a byte order mark of UTF-8 at the start. */
function bytesAsText(bytes: Uint8Array): string {
  const [first, second, third] = bytes;
  const isMarked = first === 0xef && second === 0xbb && third === 0xbf;
  return bufferOf(isMarked ? bytes.subarray(3) : bytes).toString("latin1");
}

function decodeUtf8(bytes: string): string {
  return /[\x80-\xff]/.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
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
