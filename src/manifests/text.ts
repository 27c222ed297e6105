import { encodingNamed } from "../parsers/text.ts";

/**
 * Returns the text of a playlist or an MPD, also of its first bytes. UTF-8, unless a byte order mark, zero bytes or the declaration
 * of XML (Appendix F) say otherwise.
 */
export function decodeManifest(bytes: Uint8Array): string {
  return new TextDecoder(encodingOf(bytes)).decode(bytes);
}

/** Returns what a file is by its first bytes; `null` if it is neither a playlist nor an MPD. */
export function sniffManifest(head: Uint8Array): "m3u8" | "dash" | null {
  if (/^#EXTM3U/i.test(decodeStart(head))) return "m3u8";
  return sniffRoot(head) === "MPD" ? "dash" : null;
}

/** Whether a response has nothing of a playlist or an MPD: some servers send nothing, or a message with status 200, for a moment. */
export function hasNoManifest(body: Uint8Array): boolean {
  const text = decodeManifest(body);
  return !text.includes("#EXT") && !text.includes("MPD");
}

/** Returns the name of the root element of XML by its first bytes, without a prefix; `null` if they are no XML. */
export function sniffRoot(head: Uint8Array): string | null {
  const text = decodeStart(head);
  return rootName.exec(text.slice(startOfRoot(text)))?.[1] ?? null;
}

function decodeStart(head: Uint8Array): string {
  return decodeManifest(head.subarray(0, maxSniffed)).trimStart();
}

const rootName = /^<(?:[\w.-]{1,50}:)?([\w.-]{1,50})[\s/>]/;
const maxSniffed = 2_048;

/** Returns where the root element of XML starts: after its declaration, comments, a document type and processing instructions. */
function startOfRoot(text: string): number {
  for (let at = 0; ;) {
    while (/\s/.test(text.charAt(at))) at++;
    const isComment = text.startsWith("<!--", at);
    if (!isComment && !text.startsWith("<?", at) && !text.startsWith("<!", at)) return at;
    const end = isComment ? text.indexOf("-->", at + 4) : endOfTag(text, at);
    if (end < at) return text.length;
    at = end + (isComment ? 3 : 1);
  }
}

/** Returns the index of the last `>` before the next tag. */
function endOfTag(text: string, start: number): number {
  const next = text.indexOf("<", start + 1);
  return text.lastIndexOf(">", next < 0 ? text.length : next);
}

function encodingOf(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (bytes.length >= 2 && second === 0 && first !== 0) return "utf-16le";
  if (bytes.length >= 2 && first === 0 && second !== 0) return "utf-16be";
  const declaration = Buffer.from(bytes.subarray(0, 200)).toString("latin1");
  const [, label = ""] = /^<\?xml[^>]*?\sencoding\s*=\s*["']([\w-]{1,40})["']/.exec(declaration) ?? [];
  // In UTF-16, the declaration would not read as it does in ASCII.
  return encodingNamed(label)?.startsWith("utf-16") === false ? label : "utf-8";
}
