import { pictureBlock, readComments, type AudioTags, withTags, writeComments } from "./vorbis-comments.ts";

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
