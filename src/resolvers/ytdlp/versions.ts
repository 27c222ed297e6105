/** Older ones let a page choose how requests are sent, or need no JavaScript where sites now do. */
const leastVersion = "2025.11.12";

/** Sites change all the time; an extractor seldom works longer. */
const maxAgeDays = 90;

/** Returns the rule that a version of yt-dlp breaks; undefined if it may be used. */
export function findVersionProblem(version: string): string | undefined {
  return releaseTime(version) >= releaseTime(leastVersion)
    ? undefined
    : `must be yt-dlp ${leastVersion} or newer, as older ones are unsafe; it is ${version}`;
}

/** Returns how many days ago a version was released if that is too long, else undefined. */
export function findExcessiveAge(version: string, now: number): number | undefined {
  const days = Math.floor((now - releaseTime(version)) / 86_400_000);
  return days > maxAgeDays ? days : undefined;
}

/** A version is the day of its release: `2025.11.12`, with a fourth number for nightly builds. */
function releaseTime(version: string): number {
  const [year = Number.NaN, month = 1, day = 1] = version.split(".").map(Number);
  return Date.UTC(year, month - 1, day);
}
