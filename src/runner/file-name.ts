/** Bytes in UTF-8; file systems take 255, and programs that save the file like to add something. */
const maxBytes = 200;

/** More cannot fit; what is behind need not be looked at. */
const maxLength = 1_000;

/**
 * A name under which anybody can save the file, made of `title`: at most 200 bytes of UTF-8 with the
 * extension; without control characters and marks that turn the reading direction, without what a
 * file system forbids (Windows' list, the longest), without dots in front or behind; not a device of
 * Windows. `id` where nothing is left of the title.
 */
export function fileName(title: string | null, ext: string, id: string): string {
  const extension = /^[a-z0-9]{1,10}$/i.test(ext) ? `.${ext}` : "";
  const stem = trim(shorten(readable(title ?? ""), maxBytes - extension.length));
  const isDevice = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i.test(stem);
  if (stem === "" || isDevice) return `${id}${extension}`;
  return `${stem}${extension}`;
}

function readable(title: string): string {
  const text = title.slice(0, maxLength).toWellFormed().normalize("NFC");
  // Joiners (U+200C, U+200D) are part of words and emoji; other format characters only hide things.
  const visible = text
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .replaceAll(/(?![\u200C\u200D])\p{Cf}/gu, "");
  return trim(visible.replaceAll(/[/\\:*?"<>|]/g, "_"));
}

/** Without white space, dots and joiners at both ends. */
function trim(text: string): string {
  const start = text.search(/[^\s.\u200C\u200D]/);
  let end = text.length;
  while (end > start && /[\s.\u200C\u200D]/.test(text.charAt(end - 1))) end -= 1;
  return start === -1 ? "" : text.slice(start, end);
}

/** The longest beginning of whole characters, as people see them, that fits. */
function shorten(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  let room = bytes;
  let end = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    room -= Buffer.byteLength(segment);
    if (room < 0) break;
    end += segment.length;
  }
  return text.slice(0, end);
}
