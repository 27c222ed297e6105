/** The names that pino's levels have, by their numbers. */
const levels = new Map([
  [10, "trace"],
  [20, "debug"],
  [30, "info"],
  [40, "warn"],
  [50, "error"],
  [60, "fatal"],
]);

/** Control characters, line separators, and what changes the reading direction or is invisible. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Returns a line of pino's log for people: local time, level, words, then `name=value` for each further member, errors
 * last: their stacks go on in further lines, which are indented. Nothing in it controls a terminal or looks like another
 * line: such characters are escaped.
 */
export function formatLogLine(json: string): string {
  const { level, time, msg = "", pid: _pid, hostname: _host, ...members } = JSON.parse(json) as Line;
  const name = levels.get(level) ?? String(level);
  const sorted = Object.entries(members).toSorted((a, b) => rankOf(a) - rankOf(b));
  const pairs = sorted.map(([key, value]) => ` ${escape(key)}=${formatValue(value)}`);
  return `${formatTime(new Date(time))} ${name.padEnd(5)} ${escape(msg)}${pairs.join("")}\n`;
}

interface Line {
  level: number;
  time: number;
  msg?: string;
  [member: string]: unknown;
}

/** What belongs together comes before the id of the request, and what takes several lines last. */
function rankOf([name, value]: [string, unknown]): number {
  return hasStack(value) ? 2 : name === "reqId" ? 1 : 0;
}

function formatValue(value: unknown): string {
  if (hasStack(value)) return value.stack.split("\n").map(escape).join("\n      ");
  if (typeof value === "string" && /^[^\s"=]+$/u.test(value)) return escape(value);
  return escape(JSON.stringify(value));
}

function hasStack(value: unknown): value is { stack: string } {
  return typeof value === "object" && value !== null && "stack" in value && typeof value.stack === "string";
}

function formatTime(time: Date): string {
  const [hours, minutes, seconds] = [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits);
  return `${hours}:${minutes}:${seconds}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

function escape(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}
