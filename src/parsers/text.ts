/** Bounds of what is kept of a page's texts, UTF-16 code units. */
export const maxTitleLength = 2_000;
export const maxDescriptionLength = 10_000;

/** One line: white space collapsed, cut to `maxTitleLength`; `null` for nothing. */
export function readLine(value: string | null | undefined): string | null {
  const line = cut(value, maxTitleLength)?.replace(/\s+/g, " ").trim();
  return line === undefined || line === "" ? null : line;
}

/** Text with its line breaks, cut to `maxDescriptionLength`; `null` for nothing. */
export function readParagraphs(value: string | null | undefined): string | null {
  const text = cut(value, maxDescriptionLength)?.trim();
  return text === undefined || text === "" ? null : text;
}

/** Like `readParagraphs`, of a text that may be HTML, as schema.org's descriptions often are. */
export function readProse(value: string | null | undefined): string | null {
  const text = readParagraphs(value);
  if (text === null || !/<\/?(?:a|b|br|div|em|i|li|p|span|strong|ul)\b/i.test(text)) return text;
  const lines = text.replace(/<(?:br|\/p|\/div|\/li)\b[^<>]*>/gi, "\n");
  return readParagraphs(lines.replace(/<\/?[a-z][^<>]*>/gi, ""));
}

/** Well-formed, also where the cut would split a surrogate pair. */
function cut(value: string | null | undefined, length: number): string | undefined {
  const start = value?.trimStart();
  if (start === undefined || start.length <= length) return start?.toWellFormed();
  return start
    .slice(0, length)
    .replace(/[\uD800-\uDBFF]$/, "")
    .toWellFormed();
}
