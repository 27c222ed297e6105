/** A day; longer waits are cut to it. */
const maxSeconds = 24 * 60 * 60;

/**
 * Returns the seconds to wait that a `Retry-After` field states, as delay or as date (RFC 9110
 * §10.2.3): a whole number, 1–86400; undefined if there is no field or it is neither.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : secondsUntil(value, now);
  if (Number.isNaN(seconds)) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), 1), maxSeconds);
}

/** Parses the three forms of HTTP-date (RFC 9110 §5.6.7); asctime's has no "GMT", but is GMT. */
function secondsUntil(date: string, now: Date): number {
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [\w :-]{1,40}$/.test(date)) return Number.NaN;
  const time = Date.parse(date.endsWith(" GMT") ? date : `${date} GMT`);
  return (time - now.getTime()) / 1000;
}
