import type { Additions, Cover } from "../additions.ts";

const vendor = "unreel";

/** Returns a comment header without its signature (Ogg Vorbis I §5.2): the vendor, and a list of fields in UTF-8. */
export function vorbisComments({ tags, chapters, cover }: Pick<Additions, "tags" | "chapters" | "cover">): Uint8Array {
  const { title, artist, date, description, url } = tags;
  const stated = { TITLE: title, ARTIST: artist, DATE: date, DESCRIPTION: description, PURL: url };
  const fields = Object.entries(stated).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]));
  for (const [index, chapter] of chapters.slice(0, maxChapters).entries()) {
    const name = `CHAPTER${String(index).padStart(3, "0")}`;
    fields.push(`${name}=${clock(chapter.startS)}`, `${name}NAME=${chapter.title}`);
  }
  if (cover !== null) fields.push(`METADATA_BLOCK_PICTURE=${pictureBlock(cover).toString("base64")}`);
  const parts = [sized(vendor), u32(fields.length), ...fields.map(sized)];
  return Buffer.concat(parts);
}

/** Their names have three digits (Ogg chapter extension). */
const maxChapters = 1_000;

/** Returns a picture as FLAC has it (RFC 9639 §8.8), as front cover. */
function pictureBlock({ mimeType, data }: Cover): Buffer {
  const frontCover = 3;
  const type = Buffer.from(mimeType);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(frontCover);
  header.writeUInt32BE(type.length, 4);
  // No description; width, height, depth and colours are those of the picture itself.
  const rest = Buffer.alloc(24);
  rest.writeUInt32BE(data.length, 20);
  return Buffer.concat([header, type, rest, data]);
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u32(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function clock(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const digits = (value: number, length: number) => String(value).padStart(length, "0");
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, ms % 60_000];
  return `${digits(hours, 2)}:${digits(minutes, 2)}:${digits(Math.floor(rest / 1000), 2)}.${digits(rest % 1000, 3)}`;
}
