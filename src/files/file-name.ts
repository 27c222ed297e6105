/** Bytes in UTF-8; file systems allow 255, and browsers may append to the name. */
const maxBytes = 200;

/** UTF-16 units of the title that are looked at; more cannot fit. */
const maxLength = 1_000;

/** What follows the title of a file: language, role, number and extension. */
const endingPattern = /^(?:\.[a-z0-9-]{1,35}){1,4}$/i;

/**
 * Returns a file name made of `title` that every file system accepts: at most 200 bytes of UTF-8 with the
 * ending; without control characters, marks of the reading direction and the characters that Windows
 * forbids; without dots at the start or end and hyphens at the start; with `_` before the name of a Windows device. Uses `id` if
 * nothing of the title is left.
 */
export function fileName(title: string | null, ending: string, id: string): string {
  const extension = endingPattern.test(ending) ? ending : "";
  const fit = (text: string) => trim(shorten(text, maxBytes - extension.length));
  const stem = fit(unlikeDevice(fit(readable(title ?? ""))));
  return `${stem === "" ? id : stem}${extension}`;
}

/** Returns the name of a medium: that of the other files of its task without their endings, with its extension (`mp4`). */
export function mediumName(title: string | null, ext: string, id: string): string {
  return fileName(title && withoutExtension(title, ext), `.${ext}`, id);
}

/**
 * Returns a title without this extension (`mp4`) at its end, in whatever case, as its file gets it anyway; as it is if it has nothing
 * else. For all files of a task, `ext` is that of the medium, so that their names begin alike.
 */
export function withoutExtension(title: string, ext: string): string {
  const text = readable(title);
  const length = text.length - ext.length - 1;
  const isAtEnd = ext !== "" && text.slice(Math.max(0, length)).toLowerCase() === `.${ext}`;
  return isAtEnd && /[^\s.-]/.test(text.slice(0, length)) ? text.slice(0, length) : title;
}

/** Windows takes these names for devices, whatever follows a dot. */
const devicePattern = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)\s*(?:\.|$)/i;

/** Returns the name, with `_` before it if Windows takes it for that of a device. */
export function unlikeDevice(name: string): string {
  return devicePattern.test(name) ? `_${name}` : name;
}

function readable(title: string): string {
  const text = title.slice(0, maxLength).toWellFormed().normalize("NFC");
  // Joiners (U+200C, U+200D) are part of words and emoji; other format characters are invisible.
  const visible = text.replaceAll(/[\p{Cc}\s]+/gu, " ").replaceAll(/(?![\u200C\u200D])\p{Cf}/gu, "");
  return trim(visible.replaceAll(/[/\\:*?"<>|]/g, "_"));
}

/** Removes white space, dots and joiners at both ends, and hyphens at the start: programs take them for options. */
function trim(text: string): string {
  const start = text.search(/[^\s.\-\u200C\u200D]/);
  let end = text.length;
  while (end > start && /[\s.\u200C\u200D]/.test(text.charAt(end - 1))) end -= 1;
  return start === -1 ? "" : text.slice(start, end);
}

/** Returns the longest start of a text that is made of whole grapheme clusters and has at most this many bytes in UTF-8. */
export function shorten(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  let left = bytes;
  let end = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    left -= Buffer.byteLength(segment);
    if (left < 0) break;
    end += segment.length;
  }
  return text.slice(0, end);
}
