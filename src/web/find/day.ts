// Apart from the other texts, which the first visit loads.

/** Returns the day of an RFC 3339 time; a date without a time is the same day everywhere. */
export function formatDay(time: string): string {
  const date = new Date(time);
  return (time.includes("T") ? day : dayAnywhere).format(date);
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const dayAnywhere = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
