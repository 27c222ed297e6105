/**
 * Returns a count as pages write it: digits, also in groups of three (`1,234,567`, `1.234`, `1 234`);
 * `null` if it is none, also for rounded ones (`1.2M`).
 */
export function parseCount(value: string | null | undefined): number | null {
  const text = value?.slice(0, 60).trim() ?? "";
  if (!/^(?:\d{1,15}|\d{1,3}(?:([,. '\u00A0\u202F])\d{3})(?:\1\d{3})*)$/.test(text)) return null;
  const count = Number(text.replace(/\D/g, ""));
  return Number.isSafeInteger(count) ? count : null;
}

/** Returns a length in pixels: a positive whole number, also with `px`; else `null`. */
export function parsePixels(value: string | null | undefined): number | null {
  const match = /^(\d{1,5})(?:\.0+)?(?:px)?$/.exec(value?.slice(0, 30).trim() ?? "");
  const pixels = Number(match?.[1] ?? 0);
  return pixels > 0 ? pixels : null;
}

/** 31 days. Longer values are counters of endless broadcasts, not durations. */
const maxSeconds = 31 * 86_400;

const amount = String.raw`(\d{1,9}(?:[.,]\d{1,20})?)`;
const iso = new RegExp(
  `^P?(?:0+Y)?(?:0+M)?(?:${amount}W)?(?:${amount}D)?T?(?:${amount}H)?(?:${amount}M)?(?:${amount}S)?$`,
  "i",
);
const clock = /^(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2}(?:[.,]\d{1,20})?)$/;
const seconds = new RegExp(`^${amount}\\s*(?:s|secs?|seconds?)?$`, "i");

/**
 * Returns the seconds of an ISO 8601 duration as pages write it (`PT4M40S`, `T1M1S`, `PT2180S`,
 * `P0DT0H3M`), of a clock (`30:06`, `01:28:41`) or of plain seconds; decimals with point or comma.
 * Returns `null` for anything else, for years and months other than 0, for 0, and over 31 days.
 */
export function parseDuration(value: string | null | undefined): number | null {
  return parseOffset(value) || null;
}

/** Returns the seconds from the start of a medium, in the forms of `parseDuration`; also 0. */
export function parseOffset(value: string | null | undefined): number | null {
  const text = value?.slice(0, 100).trim() ?? "";
  const total = fromSeconds(text) ?? fromClock(text) ?? fromIso(text.replaceAll(" ", ""));
  return total === null || total > maxSeconds ? null : Math.round(total * 1000) / 1000;
}

function fromSeconds(text: string): number | null {
  const [, count] = seconds.exec(text) ?? [];
  return count === undefined ? null : number(count);
}

function fromClock(text: string): number | null {
  const [, hours, minutes, rest] = clock.exec(text) ?? [];
  return rest === undefined ? null : number(hours) * 3600 + number(minutes) * 60 + number(rest);
}

function fromIso(text: string): number | null {
  const match = /\d/.test(text) ? iso.exec(text) : null;
  if (match === null) return null;
  const [, weeks, days, hours, minutes, rest] = match;
  const wholeDays = number(weeks) * 7 + number(days);
  return wholeDays * 86_400 + number(hours) * 3600 + number(minutes) * 60 + number(rest);
}

function number(digits: string | undefined): number {
  return digits === undefined ? 0 : Number(digits.replace(",", "."));
}

const maxLength = 60;
const maxPathLength = 200;

const words = String.raw`[\W_]*(?:(?:u?hd|fhd|sd|[hl]q|high|medium|low|quality|video|mp4|webm|hls|dash)[\W_]*)*`;
/** A number alone, or next to words for quality and formats: any other text may have a number. */
const bareHeight = new RegExp(String.raw`^${words}(\d{3,4})${words}$`, "i");
/** `720p`, `1080p60` or `1280x720`; the number in `h264` or `x265` is no height. */
const labelledHeight = /(?:^|[^\dhx])(?:(\d{3,4})p\d{0,2}\b|\d{3,4}x(\d{3,4})(?:p\d{0,2}\b|\s|$))/i;

/** Returns the height in pixels that a label such as `720`, `HD 720p`, `1080p60`, `1280x720` or `4K` names; else `null`. */
export function parseQuality(label: string | null | undefined): number | null {
  const text = label?.slice(0, maxLength) ?? "";
  const [, lines, rows] = labelledHeight.exec(text) ?? [];
  const height = Number(lines ?? rows ?? bareHeight.exec(text)?.[1] ?? 0);
  if (height >= 100 && height <= 4_320) return height;
  const [, thousands] = /(?:^|[^\w.])([48])k\b/i.exec(text) ?? [];
  return thousands === undefined ? null : Number(thousands) * 540;
}

/** Returns the height in pixels in the name of a file, as in `otters-720p.mp4`; else `null`. */
export function qualityInPath({ pathname }: URL): number | null {
  const [, digits] = /[-_./](\d{3,4})p(?=[-_./]|$)/i.exec(pathname.slice(-maxPathLength)) ?? [];
  return digits === undefined ? null : parseQuality(digits);
}
