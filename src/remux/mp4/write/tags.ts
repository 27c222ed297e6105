import type { Additions, Chapter, Cover, Tags } from "../../additions.ts";
import { ascii, box, fullBox, u16, u32, u64 } from "../boxes.ts";

/** What a movie says already. */
interface KeptUserData {
  /** Items of its `ilst`; those that are stated again are replaced. */
  items: readonly Uint8Array[];
  /** Other boxes of its `udta`. */
  others: readonly Uint8Array[];
}

/**
 * Returns the `udta` box of a movie: tags and cover as iTunes has them, chapters as Nero has them (`chpl`); no box if there
 * is nothing to say.
 */
export function userData(
  { tags, cover, chapters }: Pick<Additions, "tags" | "cover" | "chapters">,
  kept: KeptUserData = { items: [], others: [] },
): Uint8Array[] {
  const own = [...tagItems(tags), ...coverItem(cover)];
  const stated = new Set(own.map(nameOf));
  const items = [...own, ...kept.items.filter((item) => !stated.has(nameOf(item)))];
  const handler = fullBox("hdlr", 0, 0, u32(0), ascii("mdirappl"), u32(0, 0), new Uint8Array(1));
  const meta = items.length === 0 ? [] : [fullBox("meta", 0, 0, handler, box("ilst", ...items))];
  const content = [...meta, ...chapterList(chapters), ...kept.others];
  return content.length === 0 ? [] : [box("udta", ...content)];
}

/** Returns the type of an item; of one with a name of its own, that too. */
function nameOf(item: Uint8Array): string {
  const text = Buffer.from(item.buffer, item.byteOffset, Math.min(item.length, 100)).toString("latin1");
  return text.startsWith("----", 4) ? text.slice(4, text.indexOf("data", 8)) : text.slice(4, 8);
}

/** Types of values (QuickTime File Format, "Well-known types"). */
const utf8 = 1;
const imageTypes = { "image/jpeg": 13, "image/png": 14 } as const;

/** The short description; programs cut off or refuse a longer one. */
const maxDescription = 255;

function tagItems({ title, artist, date, description, url, track, ...about }: Tags): Uint8Array[] {
  const item = (type: string, text: string | null) =>
    text === null ? [] : [box(type, value(utf8, Buffer.from(text)))];
  const isLong = description !== null && description.length > maxDescription;
  return [
    ...item("\u00a9nam", title),
    ...item("\u00a9ART", artist),
    ...item("\u00a9day", date),
    ...item("desc", isLong ? description.slice(0, maxDescription).toWellFormed() : description),
    ...item("ldes", isLong ? description : null),
    ...item("\u00a9alb", about.album),
    ...item("aART", about.albumArtist),
    ...item("\u00a9wrt", about.composer),
    ...item("\u00a9gen", about.genre),
    ...item("cprt", about.copyright),
    ...trackItem(track),
    ...(url === null ? [] : [urlItem(url)]),
  ];
}

/** Numbers: two bytes that mean nothing, the track, how many there are, and two such bytes again. */
function trackItem(track: string | null): Uint8Array[] {
  const [, number, count = "0"] = /^(\d{1,4})(?:\/(\d{1,4}))?$/.exec(track ?? "") ?? [];
  return number === undefined ? [] : [box("trkn", value(0, Buffer.concat([u16(0, Number(number), Number(count), 0)])))];
}

/** An item with a name of its own. */
function urlItem(url: string): Uint8Array {
  const mean = fullBox("mean", 0, 0, ascii("com.apple.iTunes"));
  return box("----", mean, fullBox("name", 0, 0, ascii("URL")), value(utf8, Buffer.from(url)));
}

function coverItem(cover: Cover | null): Uint8Array[] {
  return cover === null ? [] : [box("covr", value(imageTypes[cover.mimeType], cover.data))];
}

function value(type: number, bytes: Uint8Array): Uint8Array {
  return box("data", u32(type, 0), bytes);
}

const maxListed = 255;
const maxTitleBytes = 255;

/** Nero's list has at most 255 chapters; the text track has all of them. */
function chapterList(chapters: readonly Chapter[]): Uint8Array[] {
  if (chapters.length === 0) return [];
  const listed = chapters.slice(0, maxListed).map(({ startS, title }) => {
    const text = shortened(title, maxTitleBytes);
    return Buffer.concat([u64(Math.round(startS * 1e7)), Uint8Array.of(text.length), text]);
  });
  return [fullBox("chpl", 1, 0, u32(0), Uint8Array.of(listed.length), ...listed)];
}

/** Returns the start of a text as UTF-8, without a part of a character. */
function shortened(text: string, maxBytes: number): Uint8Array {
  const bytes = Buffer.from(text);
  let end = Math.min(bytes.length, maxBytes);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}
