import sniffHtmlEncoding from "html-encoding-sniffer";

/** Text is given in pieces made from so many bytes; the first one shows the encoding. */
const pieceBytes = 65_536;

/**
 * The text of an HTML page, in pieces made from 64 KiB each (the last may be shorter), however its
 * bytes were cut.
 *
 * The encoding is that of a byte order mark, else of `contentType`, else of a `<meta>` (or an XML
 * declaration), else UTF-8. A `<meta>` counts up to the end of the head within the first piece, as
 * it does in browsers, which scan on or start over when it stands beyond the 1,024 bytes that HTML
 * §13.2.3.2 asks for. Bytes that are not of the encoding become U+FFFD; an encoding that may not be
 * decoded ("replacement") is read as UTF-8. Rejects only with what `body` rejects with.
 */
export async function* decodePage(
  body: AsyncIterable<Uint8Array>,
  contentType: string | null,
): AsyncGenerator<string, void, undefined> {
  let decoder: TextDecoder | undefined;
  for await (const piece of inPieces(body)) {
    decoder ??= createDecoder(piece, contentType);
    const text = decoder.decode(piece, { stream: true });
    if (text !== "") yield text;
  }
  const rest = decoder?.decode() ?? "";
  if (rest !== "") yield rest;
}

/** The same bytes in arrays of `pieceBytes`; large chunks are cut without a copy. */
async function* inPieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  for await (const chunk of body) {
    let rest = chunk;
    while (waitingBytes + rest.length >= pieceBytes) {
      const missing = pieceBytes - waitingBytes;
      const part = rest.subarray(0, missing);
      yield waiting.length === 0 ? part : Buffer.concat([...waiting, part], pieceBytes);
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

function createDecoder(start: Uint8Array, contentType: string | null): TextDecoder {
  const label = charsetParameter(contentType);
  const encoding = sniffHtmlEncoding(start, {
    ...(label === null ? {} : { transportLayerEncodingLabel: label }),
    defaultEncoding: "UTF-8",
    maxPrescanBytes: headLength(start),
  });
  return new TextDecoder(decodable.get(encoding) ?? encoding);
}

/** Names that a TextDecoder refuses, or that HTML gives another meaning, with what to use. */
const decodable: ReadonlyMap<string, string> = new Map([
  ["replacement", "utf-8"],
  ["x-user-defined", "windows-1252"],
]);

function charsetParameter(contentType: string | null): string | null {
  const [, label] =
    /;\s*charset\s*=\s*["']?([^"';,\s]+)/i.exec(contentType?.slice(0, 500) ?? "") ?? [];
  return label ?? null;
}

/**
 * How far to look for a `<meta>` with a charset: the sniffer goes byte by byte, and what it looks for
 * is rarely beyond the 1,024 bytes that it has to look at.
 */
function headLength(start: Uint8Array): number {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  const ends = ["</head", "</HEAD"].map((tag) => bytes.indexOf(tag)).filter((at) => at !== -1);
  const head = bytes.subarray(0, Math.min(bytes.length, ...ends));
  const last = Math.max(...["charset", "CHARSET", "Charset"].map((word) => head.lastIndexOf(word)));
  return Math.max(1_024, Math.min(head.length, last + 256));
}
