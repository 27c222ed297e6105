const iso =
  /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?$/i;
const compact = /^(\d{4})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})Z?)?$/;
const monthNames = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const monthPattern = String.raw`(${monthNames.join("|")})[a-z]{0,6}\.?`;
const dayMonthYear = new RegExp(String.raw`^(?:[a-z]{3,9},? )?(\d{1,2}) ${monthPattern},? (\d{4})`, "i");
const monthDayYear = new RegExp(String.raw`^(?:[a-z]{3,9},? )?${monthPattern} (\d{1,2}),? (\d{4})`, "i");
const clock = / (\d{1,2}):(\d{2})(?::(\d{2}))? ?(?:GMT|UTC|Z)?([+-]\d{2}:?\d{2})?(?: \([^()]{1,60}\))?$/i;

/**
 * Returns a time as RFC 3339 in UTC, or a date if there is no time. Accepts RFC 3339 and ISO 8601 with common errors (a
 * space for `T`, no seconds, an offset without colon), `YYYYMMDD`, Unix seconds and milliseconds, RFC 9110 and
 * JavaScript dates, English months, `D.M.YYYY`, and slashes if one number can only be the day. A time without offset is
 * taken as UTC. Returns `null` for anything else and for years outside 1900–2100.
 */
export function parseDate(value: string | null | undefined): string | null {
  const text = value?.slice(0, 100).trim().replace(/\s+/g, " ") ?? "";
  return fromIso(text) ?? fromUnix(text) ?? fromNumbers(text) ?? fromWords(text);
}

function fromIso(text: string): string | null {
  const match = iso.exec(text) ?? compact.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  const date = { year: Number(year), month: Number(month), day: Number(day) };
  if (hour === undefined) return plainDate(date);
  const ms = Number(`0.${fraction ?? "0"}`) * 1000;
  const time = { hour: Number(hour), minute: Number(minute), second: Number(second ?? 0) };
  return instant(date, time, Math.floor(ms), offset);
}

function fromUnix(text: string): string | null {
  if (!/^\d{10}(?:\d{3}|\.\d{1,6})?$/.test(text)) return null;
  const ms = text.length === 13 && !text.includes(".") ? Number(text) : Number(text) * 1000;
  return timestamp(Math.floor(ms));
}

function fromNumbers(text: string): string | null {
  const match = /^(\d{1,2})([./])(\d{1,2})\2(\d{4})$/.exec(text);
  if (match === null) return null;
  const [first, second] = [Number(match[1]), Number(match[3])];
  const year = Number(match[4]);
  if (match[2] === "." || first > 12) return plainDate({ year, month: second, day: first });
  return second > 12 || first === second ? plainDate({ year, month: first, day: second }) : null;
}

function fromWords(text: string): string | null {
  const british = dayMonthYear.exec(text);
  const match = british ?? monthDayYear.exec(text);
  if (match === null) return null;
  const [day, month] = british === null ? [match[2], match[1]] : [match[1], match[2]];
  const date = { year: Number(match[3]), month: monthNames.indexOf(month?.toLowerCase() ?? "") + 1, day: Number(day) };
  const rest = text.slice(match[0].length);
  if (rest === "") return plainDate(date);
  const time = clock.exec(rest);
  if (time === null) return /^,?(?: at)? \d{1,2}:\d{2}/.test(rest) ? plainDate(date) : null;
  const [, hour, minute, second, offset] = time;
  const at = { hour: Number(hour), minute: Number(minute), second: Number(second ?? 0) };
  return instant(date, at, 0, offset);
}

type CalendarDate = Record<"year" | "month" | "day", number>;
type TimeOfDay = Record<"hour" | "minute" | "second", number>;

function plainDate({ year, month, day }: CalendarDate): string | null {
  const ms = Date.UTC(year, month - 1, day);
  const isReal = new Date(ms).getUTCMonth() === month - 1 && day > 0;
  return isReal && isInRange(year) ? new Date(ms).toISOString().slice(0, 10) : null;
}

function instant(date: CalendarDate, { hour, minute, second }: TimeOfDay, ms: number, offset = "Z"): string | null {
  if (plainDate(date) === null || hour > 24 || minute > 59 || second > 60) return null;
  const local = Date.UTC(date.year, date.month - 1, date.day, hour, minute, second, ms);
  const sign = offset.startsWith("-") ? -1 : 1;
  const [hours = 0, minutes = 0] = (offset.match(/\d{2}/g) ?? []).map(Number);
  if (hours > 14 || minutes > 59) return null;
  return timestamp(local - sign * (hours * 60 + minutes) * 60_000);
}

function timestamp(ms: number): string | null {
  const date = new Date(ms);
  return isInRange(date.getUTCFullYear()) ? date.toISOString().replace(".000Z", "Z") : null;
}

function isInRange(year: number): boolean {
  return year >= 1900 && year <= 2100;
}
