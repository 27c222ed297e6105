import type { Chapter, Cover, Tags } from "../additions.ts";
import { iso639Of } from "../language.ts";
import { id3Size } from "../packed-audio/tags.ts";
import { type AudioTags, frontCover } from "./vorbis-comments.ts";

interface Id3Frame {
  id: string;
  /** With its header, as ID3v2.4 has it. */
  bytes: Uint8Array;
}

/**
 * Returns an ID3v2.4 tag (https://id3.org/id3v2.4.0-structure) with tags, cover and chapters (https://id3.org/id3v2-chapters-1.0), and of
 * the frames that there are already those that are not replaced; no bytes if there is nothing to say.
 *
 * @param durationS End of a chapter without one.
 */
export function writeId3(additions: AudioTags, durationS: number, kept: readonly Id3Frame[] = []): Uint8Array {
  const { tags, cover, chapters } = additions;
  const added = [...tagFrames(tags), ...coverFrame(cover), ...chapterFrames(chapters, durationS)];
  const stated = new Set(added.map(subjectOf));
  const frames = [...added, ...kept.filter((each) => !stated.has(subjectOf(each)))].map(({ bytes }) => bytes);
  if (frames.length === 0) return new Uint8Array();
  const size = frames.reduce((sum, { length }) => sum + length, 0);
  return Buffer.concat([Buffer.from("ID3\x04\0\0", "latin1"), synchsafe(size), ...frames]);
}

/** Returns what a frame is about: of some there are several, each with a name. */
function subjectOf({ id, bytes }: Id3Frame): string {
  if (id !== "COMM" && id !== "WXXX" && id !== "TXXX") return id;
  const encoding = encodings[bytes[headerBytes] ?? 0] ?? "latin1";
  // A comment has its language first.
  const start = headerBytes + (id === "COMM" ? 4 : 1);
  const [name = ""] = new TextDecoder(encoding).decode(bytes.subarray(start)).split("\0");
  if (name === "") return id;
  // ffmpeg writes a comment as a text with that name.
  return id === "TXXX" && /^(?:comment|description)$/i.test(name) ? "COMM" : `${id} ${name}`;
}

/** By the byte that stands for them (§4). */
const encodings = ["latin1", "utf-16", "utf-16be", "utf-8"];

/**
 * Reads the frames of a tag; undefined if it is none of ID3v2.2 to 2.4, or damaged. Frames that cannot be in ID3v2.4 (compressed
 * or encrypted ones of 2.3, and those of 2.2 that players hardly know) are left out.
 *
 * @param tag With its header.
 */
export function readId3(tag: Buffer): Id3Frame[] | undefined {
  const [version, flags] = [tag.readUInt8(3), tag.readUInt8(5)];
  if (version < 2 || version > 4) return undefined;
  const isOld = version < 4;
  const stored = tag.subarray(headerBytes, headerBytes + id3Size(tag, 6));
  const isUnsynchronised = (flags & 0x80) !== 0;
  const body = isOld && isUnsynchronised ? resynchronise(stored) : stored;
  // The other flag of ID3v2.2 is compression, which is not defined.
  if (version === 2) return (flags & 0x40) === 0 ? oldestFrames(body) : undefined;
  const start = (flags & 0x40) === 0 ? 0 : endOfExtendedHeader(body, isOld);
  return isOld ? oldFrames(body.subarray(start)) : framesIn(body.subarray(start), isUnsynchronised ? 2 : 0);
}

/** @param flags Of all frames, besides their own. */
function framesIn(body: Buffer, flags: number): Id3Frame[] | undefined {
  const read = splitFrames(body, (at) => id3Size(body, at));
  return read?.map(({ id, at, content }) => ({
    id,
    bytes: frameBytes(id, content, body.readUInt16BE(at + 8) | flags),
  }));
}

/** Returns the frames of ID3v2.3 as ID3v2.4 has them; `isChapter`: those in a chapter, which has no chapters. */
function oldFrames(body: Buffer, isChapter = false): Id3Frame[] | undefined {
  const read = splitFrames(body, (at) => body.readUInt32BE(at));
  // Flags for compression, encryption and groups.
  return read
    ?.filter(({ at }) => body.readUInt8(at + 9) === 0)
    .map(({ id, content }) => {
      if (id === "CHAP" && !isChapter) return frame(id, newChapter(content));
      return frame(id === "TYER" ? "TDRC" : id, content);
    });
}

/** Those of ID3v2.2 (https://id3.org/id3v2-00) that are the same in ID3v2.4 but for their names. */
const newNames = new Map(
  [
    ["TT1 TIT1", "TT2 TIT2", "TT3 TIT3", "TP1 TPE1", "TP2 TPE2", "TP3 TPE3", "TP4 TPE4", "TAL TALB", "TRK TRCK"],
    ["TPA TPOS", "TYE TDRC", "TCO TCON", "TCM TCOM", "TEN TENC", "TSS TSSE", "TBP TBPM", "TLA TLAN", "TKE TKEY"],
    ["TCR TCOP", "TPB TPUB", "TXT TEXT", "TRC TSRC", "TLE TLEN", "TCP TCMP", "TXX TXXX", "WXX WXXX", "COM COMM"],
    ["ULT USLT", "UFI UFID", "PIC APIC"],
  ].flatMap((row) => row.map((pair) => pair.split(" ") as [string, string])),
);

/** Returns the frames of ID3v2.2 that ID3v2.4 has. */
function oldestFrames(body: Buffer): Id3Frame[] | undefined {
  const frames: Id3Frame[] = [];
  for (let at = 0; at + 6 <= body.length && body.readUInt8(at) !== 0;) {
    const end = at + 6 + body.readUIntBE(at + 3, 3);
    const name = body.toString("latin1", at, at + 3);
    if (!/^[A-Z][A-Z\d]{2}$/.test(name) || end > body.length) return undefined;
    const id = newNames.get(name);
    const content = body.subarray(at + 6, end);
    if (id !== undefined) frames.push(frame(id, id === "APIC" ? newPicture(content) : content));
    at = end;
  }
  return frames;
}

/** A picture has three letters for its type. */
function newPicture(content: Buffer): Buffer {
  const type = content.toString("latin1", 1, 4).toLowerCase();
  const mimeType = `image/${type === "jpg" ? "jpeg" : type}\0`;
  return Buffer.concat([content.subarray(0, 1), Buffer.from(mimeType, "latin1"), content.subarray(4)]);
}

/** A chapter has frames in it, after its name and times. */
function newChapter(content: Buffer): Buffer {
  const start = content.indexOf(0) + 1 + 16;
  const frames = oldFrames(content.subarray(start), true) ?? [];
  return Buffer.concat([content.subarray(0, start), ...frames.map(({ bytes }) => bytes)]);
}

/** Returns undefined if a frame has no name, or is too long. */
function splitFrames(body: Buffer, sizeAt: (at: number) => number) {
  const frames: { id: string; at: number; content: Buffer }[] = [];
  for (let at = 0; at + headerBytes <= body.length;) {
    const id = body.toString("latin1", at, at + 4);
    // What follows the last frame is padding.
    if (id === "\0\0\0\0") break;
    const end = at + headerBytes + sizeAt(at + 4);
    if (!/^[A-Z][A-Z\d]{3}$/.test(id) || end > body.length) return undefined;
    frames.push({ id, at, content: body.subarray(at + headerBytes, end) });
    at = end;
  }
  return frames;
}

const headerBytes = 10;
const utf8 = 3;

/** Returns the chapters in the frames of a tag, in their order; those without a title are left out. */
export function readChapterFrames(frames: readonly Id3Frame[]): Chapter[] {
  return frames.flatMap(({ id, bytes }) => {
    const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).subarray(headerBytes);
    const at = content.indexOf(0) + 1;
    if (id !== "CHAP" || at === 0 || at + 16 > content.length) return [];
    const nested = framesIn(content.subarray(at + 16), 0) ?? [];
    const title = nested.find((each) => each.id === "TIT2")?.bytes.subarray(headerBytes);
    if (title === undefined) return [];
    const [startMs, endMs] = [content.readUInt32BE(at), content.readUInt32BE(at + 4)];
    const text = new TextDecoder(encodings[title[0] ?? 0] ?? "latin1").decode(title.subarray(1)).split("\0", 1)[0]!;
    return [{ startS: startMs / 1000, endS: endMs / 1000, title: text }];
  });
}

/** Undoes what keeps a tag from looking like audio (§6.1). */
function resynchronise(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replaceAll("\xff\0", "\xff"), "latin1");
}

/** Of ID3v2.3 its size does not count itself. */
function endOfExtendedHeader(body: Buffer, isOld: boolean): number {
  if (body.length < 4) return body.length;
  return isOld ? 4 + body.readUInt32BE(0) : id3Size(body, 0);
}

function tagFrames({ title, artist, date, description, url, ...about }: Tags): Id3Frame[] {
  const text = (id: string, value: string | null) => (value === null ? [] : [textFrame(id, value)]);
  return [
    ...text("TIT2", title),
    ...text("TPE1", artist),
    ...text("TDRC", date && timestamp(date)),
    ...text("TALB", about.album),
    ...text("TPE2", about.albumArtist),
    ...text("TCOM", about.composer),
    ...text("TCON", about.genre),
    ...text("TRCK", about.track),
    ...text("TCOP", about.copyright),
    ...text("TLAN", about.language && iso639Of(about.language)),
    // The language is unknown, the short description empty.
    ...(description === null ? [] : [frame("COMM", Uint8Array.of(utf8), "XXX\0", description)]),
    ...(url === null ? [] : [frame("WXXX", Uint8Array.of(utf8), "\0", Buffer.from(url, "latin1"))]),
  ];
}

/** Returns a date or a time as ID3v2.4 has it (§4): in UTC, without its zone and parts of seconds. */
function timestamp(date: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT/.test(date) && !Number.isNaN(Date.parse(date));
  return (isTime ? new Date(date).toISOString() : date).slice(0, 19);
}

function coverFrame(cover: Cover | null): Id3Frame[] {
  if (cover === null) return [];
  return [frame("APIC", Uint8Array.of(utf8), `${cover.mimeType}\0`, Uint8Array.of(frontCover), "\0", cover.data)];
}

/** A table of contents has at most this many entries. */
const maxEntries = 255;

/** More chapters than a table of contents may have are in tables of their own. */
function chapterFrames(chapters: readonly Chapter[], durationS: number): Id3Frame[] {
  if (chapters.length === 0) return [];
  const ids = chapters.map((_, index) => `chp${index}`);
  const frames = chapters.map((chapter, index) => chapterFrame(chapter, ids[index]!, durationS));
  if (ids.length <= maxEntries) return [contents("toc", ids, true), ...frames];
  const groups = Array.from({ length: Math.ceil(ids.length / maxEntries) }, (_, index) =>
    ids.slice(index * maxEntries, (index + 1) * maxEntries),
  );
  const tables = groups.map((group, index) => contents(`toc${index}`, group, false));
  const names = groups.map((_, index) => `toc${index}`);
  return [contents("toc", names, true), ...tables, ...frames];
}

function contents(id: string, entries: readonly string[], isTop: boolean): Id3Frame {
  const isOrdered = 1;
  const flags = isOrdered | (isTop ? 2 : 0);
  const children = entries.map((entry) => `${entry}\0`).join("");
  return frame("CTOC", `${id}\0`, Uint8Array.of(flags, entries.length), children);
}

function chapterFrame({ startS, endS, title }: Chapter, id: string, durationS: number): Id3Frame {
  const times = Buffer.alloc(16, 0xff);
  const ms = (seconds: number) => Math.min(Math.round(seconds * 1000), maxMs);
  times.writeUInt32BE(ms(startS));
  times.writeUInt32BE(ms(Math.min(endS, Math.max(durationS, startS))), 4);
  // No offsets in bytes: 0xffffffff.
  return frame("CHAP", `${id}\0`, times, textFrame("TIT2", title).bytes);
}

const maxMs = 0xffff_fffe;

function textFrame(id: string, text: string): Id3Frame {
  return frame(id, Uint8Array.of(utf8), text);
}

function frame(id: string, ...parts: readonly (Uint8Array | string)[]): Id3Frame {
  return { id, bytes: frameBytes(id, Buffer.concat(parts.map(bytesOf))) };
}

const bytesOf = (part: Uint8Array | string) => (typeof part === "string" ? Buffer.from(part) : part);

function frameBytes(id: string, content: Uint8Array, flags = 0): Uint8Array {
  const last = Uint8Array.of(flags >> 8, flags & 0xff);
  return Buffer.concat([Buffer.from(id, "latin1"), synchsafe(content.length), last, content]);
}

/** Returns seven bits per byte (§6.2). */
function synchsafe(value: number): Uint8Array {
  return Uint8Array.from([21, 14, 7, 0], (shift) => (value >> shift) & 0x7f);
}
