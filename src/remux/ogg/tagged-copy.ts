import { createFileWindow, type OpenFile } from "../open-file.ts";
import { type AudioTags, readComments, withTagsAndCover, writeComments } from "../tags/vorbis-comments.ts";
import { isIntact, OggWriter, readPage } from "./pages.ts";

/** Codecs whose second packet is a comment header: how the first one and that begin, and how many headers there are. */
const codecs = [
  { first: "OpusHead", comments: "OpusTags", count: 2, ending: "" },
  // The framing bit (Ogg Vorbis I §5.2.1).
  { first: "\x01vorbis", comments: "\x03vorbis", count: 3, ending: "\x01" },
] as const;

/** More pages, or bytes of headers, are none. */
const maxHeaderPages = 4_000;
const maxHeaderBytes = 64 << 20;

/**
 * Returns a copy of an Ogg file with one stream of Vorbis or Opus, in which its comment header has these tags: its audio pages stay, but for their
 * numbers; what its comments say already is kept unless it is replaced. Each step writes a bounded part; the last one returns false if pages are
 * damaged or missing, which their new numbers would hide. Returns undefined for other files, and damaged headers.
 */
export function planOgg(
  file: OpenFile,
  additions: AudioTags,
): ((fd: number) => Generator<undefined, boolean>) | undefined {
  const headers = readHeaders(file);
  const codec = codecs.find(({ first }) => headers?.packets[0]?.toString("latin1", 0, first.length) === first);
  const stored = headers?.packets[1];
  if (headers === undefined || codec === undefined || headers.packets.length !== codec.count) return undefined;
  if (stored?.toString("latin1", 0, codec.comments.length) !== codec.comments) return undefined;
  const comments = readComments(stored.subarray(codec.comments.length));
  if (comments === undefined) return undefined;
  const written = writeComments(withTagsAndCover(additions, comments));
  const replaced = Buffer.concat([Buffer.from(codec.comments), written, Buffer.from(codec.ending, "latin1")]);
  return (fd) => writeCopy(file, fd, headers, replaced);
}

type Headers = Exclude<ReturnType<typeof readHeaders>, undefined>;

/** Reads the packets before the first page of audio: that begins after the last header (Ogg Vorbis I §A.2, RFC 7845 §3). */
function readHeaders(file: OpenFile) {
  const window = createFileWindow(file);
  const packets: Buffer[] = [];
  let serial: number | undefined;
  let count = Infinity;
  let parts: Buffer[] = [];
  let bytes = 0;
  let at = 0;
  for (let pages = 0; packets.length < count; pages++) {
    const page = readPage(window, at);
    if (page === undefined || pages === maxHeaderPages || page.serial !== (serial ??= page.serial)) return undefined;
    const body = window.at(page.body);
    let from = 0;
    for (const size of page.segments) {
      parts.push(Buffer.from(body.subarray(from, from + size)));
      from += size;
      bytes += size;
      if (size === 255) continue;
      packets.push(Buffer.concat(parts));
      parts = [];
    }
    const [first] = packets;
    count = codecs.find((codec) => first?.toString("latin1", 0, codec.first.length) === codec.first)?.count ?? 0;
    if (bytes > maxHeaderBytes) return undefined;
    at = page.end;
  }
  const next = readPage(window, at);
  const isOther = next !== undefined && (next.isFirst || next.isContinued);
  return parts.length > 0 || isOther || serial === undefined ? undefined : { packets, serial, end: at };
}

const stepPages = 64;

function* writeCopy(
  file: OpenFile,
  fd: number,
  { packets: [first, , ...others], serial, end }: Headers,
  comments: Uint8Array,
): Generator<undefined, boolean> {
  const writer = new OggWriter(fd, serial);
  writer.add(first!, 0n, true);
  writer.add(comments, 0n, others.length === 0);
  for (const [index, packet] of others.entries()) writer.add(packet, 0n, index === others.length - 1);
  const window = createFileWindow(file);
  let at = end;
  let sequence: number | undefined;
  for (let count = 1; ; count++) {
    const page = readPage(window, at);
    if (page?.serial !== serial || page.isFirst) break;
    const bytes = window.at(at).subarray(0, page.end - at);
    if (!isIntact(bytes) || (sequence !== undefined && page.sequence !== sequence + 1)) return false;
    writer.copyPage(bytes);
    ({ sequence } = page);
    at = page.end;
    if (count % stepPages === 0) yield;
  }
  // Another stream after this one, or what is no page.
  while (at < file.size) {
    const rest = window.at(at);
    writer.copyBytes(rest);
    at += rest.length;
    yield;
  }
  return true;
}
