import { roundSeconds } from "./manifest.ts";

const pattern =
  /^P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{0,12})?)S)?)?$/;
const unitsS = [31_536_000, 2_592_000, 86_400, 3_600, 60, 1];

/**
 * An `xs:duration` (XML Schema 2 §3.3.6) in seconds; a year is 365 days and a month 30. `null` for
 * what is none or is negative.
 */
export function xsDuration(value: string | undefined): number | null {
  const parts = pattern.exec(value?.trim() ?? "");
  if (parts === null || parts.slice(1).every((part) => part === undefined)) return null;
  let seconds = 0;
  for (const [index, unitS] of unitsS.entries()) seconds += Number(parts[index + 1] ?? 0) * unitS;
  return roundSeconds(seconds) ?? 0;
}
