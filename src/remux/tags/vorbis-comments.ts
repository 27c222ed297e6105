import { type Additions, clock, type Cover } from "../additions.ts";
import { iso639Of } from "../language.ts";

export type AudioTags = Pick<Additions, "tags" | "chapters" | "cover">;

/** A comment header (Ogg Vorbis I §5.2). */
interface VorbisComments {
  /** What the stream was made with. */
  vendor: string;
  /** `NAME=value`. */
  fields: readonly string[];
}

const own: VorbisComments = { vendor: "unreel", fields: [] };

/** Returns comments with tags and chapters, and of those that there are already what is not replaced. */
function withTags({ tags, chapters }: AudioTags, { vendor, fields }: VorbisComments = own): VorbisComments {
  const { title, artist, date, description, url, albumArtist, track, ...about } = tags;
  const stated = {
    TITLE: title,
    ARTIST: artist,
    DATE: date,
    DESCRIPTION: description,
    PURL: url,
    ALBUM: about.album,
    ALBUMARTIST: albumArtist,
    COMPOSER: about.composer,
    GENRE: about.genre,
    TRACKNUMBER: track,
    COPYRIGHT: about.copyright,
    LANGUAGE: about.language && iso639Of(about.language),
  };
  const added = Object.entries(stated).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]));
  for (const [index, chapter] of chapters.slice(0, maxChapters).entries()) {
    const name = `CHAPTER${String(index).padStart(3, "0")}`;
    added.push(`${name}=${clock(chapter.startS)}`, `${name}NAME=${chapter.title}`);
  }
  const replaced = new Set(added.map(subjectOf));
  return { vendor, fields: [...added, ...fields.filter((field) => !replaced.has(subjectOf(field)))] };
}

/** Their names have three digits (Ogg chapter extension). */
const maxChapters = 1_000;

/** Returns what a field is about: programs write a description as one of two, and chapters belong together. */
function subjectOf(field: string): string {
  const name = field.slice(0, field.indexOf("=")).toUpperCase();
  if (/^CHAPTER\d{3}/.test(name)) return "CHAPTER";
  return name === "COMMENT" ? "DESCRIPTION" : name;
}

/** Returns comments without chapters, whose times are those of media that were cut. */
export function withoutChapters({ vendor, fields }: VorbisComments): VorbisComments {
  return { vendor, fields: fields.filter((field) => subjectOf(field) !== "CHAPTER") };
}

/** As `withTags`, with the cover as a field (METADATA_BLOCK_PICTURE), which replaces the pictures that there are. */
export function withTagsAndCover(additions: AudioTags, comments?: VorbisComments): VorbisComments {
  const { vendor, fields } = withTags(additions, comments);
  const { cover } = additions;
  if (cover === null) return { vendor, fields };
  const picture = `${pictureName}=${pictureBlock(cover).toString("base64")}`;
  return { vendor, fields: [...fields.filter((field) => subjectOf(field) !== pictureName), picture] };
}

const pictureName = "METADATA_BLOCK_PICTURE";

/** Returns a comment header without its signature: the vendor, and a list of fields in UTF-8. */
export function writeComments({ vendor, fields }: VorbisComments): Buffer {
  return Buffer.concat([sized(vendor), u32(fields.length), ...fields.map(sized)]);
}

/** Reads a comment header without its signature; undefined if it is damaged. */
export function readComments(bytes: Buffer): VorbisComments | undefined {
  let at = 0;
  const number = (): number => {
    at += 4;
    return at <= bytes.length ? bytes.readUInt32LE(at - 4) : Infinity;
  };
  const text = (): string => {
    const length = number();
    at += length;
    return at <= bytes.length ? bytes.toString("utf8", at - length, at) : "";
  };
  const vendor = text();
  const fields: string[] = [];
  for (let left = number(); left > 0 && at < bytes.length; left--) fields.push(text());
  return at <= bytes.length ? { vendor, fields } : undefined;
}

/** Returns a picture as FLAC has it (RFC 9639 §8.8), as front cover. */
function pictureBlock({ mimeType, data }: Cover): Buffer {
  const type = Buffer.from(mimeType);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(frontCover);
  header.writeUInt32BE(type.length, 4);
  // No description; width, height, depth and colours are those of the picture itself.
  const rest = Buffer.alloc(24);
  rest.writeUInt32BE(data.length, 20);
  return Buffer.concat([header, type, rest, data]);
}

/** The type of a picture (RFC 9639 §8.8), as ID3 has it too. */
export const frontCover = 3;

function sized(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u32(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** A metadata block of FLAC (RFC 9639 §8), without its header. */
interface FlacBlock {
  type: number;
  content: Buffer;
}

const types = { streamInfo: 0, padding: 1, comments: 4, picture: 6 } as const;
const headerBytes = 4;
const streamInfoBytes = 34;
const maxContent = 0xff_ffff;

/** What lies before the audio may be so long. */
const maxBytes = 64 << 20;

/**
 * Reads the metadata blocks after the signature of FLAC; returns undefined if they do not begin with STREAMINFO, are cut off, or
 * longer than 64 MiB.
 *
 * @param read Returns the bytes at a position, fewer at the end.
 */
export function readFlacBlocks(
  read: (at: number, length: number) => Buffer,
): { blocks: FlacBlock[]; end: number } | undefined {
  const blocks: FlacBlock[] = [];
  if (read(0, 4).toString("latin1") !== "fLaC") return undefined;
  for (let at = 4; at < maxBytes;) {
    const header = read(at, headerBytes);
    if (header.length < headerBytes) return undefined;
    const [first, length] = [header.readUInt8(0), header.readUIntBE(1, 3)];
    const content = read(at + headerBytes, length);
    if (content.length < length) return undefined;
    blocks.push({ type: first & 0x7f, content });
    at += headerBytes + length;
    if ((first & 0x80) !== 0) return isStreamInfo(blocks[0]) ? { blocks, end: at } : undefined;
  }
  return undefined;
}

const isStreamInfo = (block: FlacBlock | undefined): boolean =>
  block?.type === types.streamInfo && block.content.length === streamInfoBytes;

/**
 * Returns the start of a FLAC file: its signature, and metadata blocks with tags, chapters and a cover, which replace what there is
 * of the same; without padding. Returns undefined if its comments cannot be read, or a block would be too long.
 */
export function writeFlacStart(blocks: readonly FlacBlock[], additions: AudioTags): Buffer | undefined {
  const known = blocks.find(({ type }) => type === types.comments);
  const comments = known && readComments(known.content);
  if (known !== undefined && comments === undefined) return undefined;
  const { cover } = additions;
  const replaced = new Set<number>([
    types.streamInfo,
    types.padding,
    types.comments,
    ...(cover ? [types.picture] : []),
  ]);
  const [streamInfo] = blocks;
  const all = [
    streamInfo!,
    { type: types.comments, content: writeComments(withTags(additions, comments)) },
    ...(cover === null ? [] : [{ type: types.picture, content: pictureBlock(cover) }]),
    ...blocks.filter(({ type }) => !replaced.has(type)),
  ];
  if (all.some(({ content }) => content.length > maxContent)) return undefined;
  const parts = all.flatMap(({ type, content }, index) => {
    const header = Buffer.alloc(headerBytes);
    header.writeUIntBE(content.length, 1, 3);
    header[0] = type | (index === all.length - 1 ? 0x80 : 0);
    return [header, content];
  });
  return Buffer.concat([Buffer.from("fLaC", "latin1"), ...parts]);
}
