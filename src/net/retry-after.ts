/** A server that names a later time than this is asked again after a day. */
const maxSeconds = 24 * 60 * 60;

/**
 * Seconds to wait that a `Retry-After` field states, as delay or as date (RFC 9110 §10.2.3): whole,
 * 1–86400. `undefined` where there is no such field or it says neither.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : secondsUntil(value, now);
  if (Number.isNaN(seconds)) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), 1), maxSeconds);
}

/** The three forms of HTTP-date (RFC 9110 §5.6.7); the third, asctime's, does not say that it is GMT. */
function secondsUntil(date: string, now: Date): number {
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [\w :-]{1,40}$/.test(date)) return Number.NaN;
  const time = Date.parse(date.endsWith(" GMT") ? date : `${date} GMT`);
  return (time - now.getTime()) / 1000;
}
