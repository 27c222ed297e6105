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
  const text = value?.slice(0, 100).trim() ?? "";
  const total = fromSeconds(text) ?? fromClock(text) ?? fromIso(text.replaceAll(" ", ""));
  if (total === null || total <= 0 || total > maxSeconds) return null;
  return Math.round(total * 1000) / 1000;
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
  const match = iso.exec(text);
  if (match === null) return null;
  const [, weeks, days, hours, minutes, rest] = match;
  const wholeDays = number(weeks) * 7 + number(days);
  return wholeDays * 86_400 + number(hours) * 3600 + number(minutes) * 60 + number(rest);
}

function number(digits: string | undefined): number {
  return digits === undefined ? 0 : Number(digits.replace(",", "."));
}
