import { constants, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";

type LogFormat = "auto" | "json" | "text";

interface LogOutput {
  /** Writes a line without ever waiting: see `openLogOutput`. */
  write(line: string): void;
  /** Aborted once the log cannot be read: its terminal or the other end of its pipe was closed. */
  readonly closed: AbortSignal;
}

/** How much waits for a reader, bytes. */
const maxWaitingBytes = 1024 * 1024;
const retryMs = 100;

/**
 * Opens standard output for the lines of pino's log, which are written as JSON, or as `formatLogLine` returns them: `auto` is
 * `text` on a terminal, else `json`. `write` never waits and never throws: lines wait while a pipe or a
 * terminal is full, and are dropped while `maxWaitingBytes` wait or a disk is full. `onDropped` is called with their
 * number once lines are written again.
 */
export function openLogOutput(format: LogFormat, onDropped: (lines: number) => void): LogOutput {
  const isTerminal = isatty(1);
  const isText = format === "text" || (format === "auto" && isTerminal);
  const fd = openStandardOutput(isTerminal);
  const closed = new AbortController();
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropped = 0;

  /** Returns the bytes that could not be written yet. */
  function tryWrite(bytes: Buffer): Buffer | undefined {
    try {
      const written = writeSync(fd, bytes);
      return written < bytes.length ? bytes.subarray(written) : undefined;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") return bytes;
      if (code === "EPIPE" || (isTerminal && code === "EIO")) closed.abort();
      dropped += 1;
      return undefined;
    }
  }

  function writeWaiting(): void {
    const lines = waiting;
    waiting = [];
    waitingBytes = 0;
    for (const line of lines) add(line);
  }

  function add(bytes: Buffer): void {
    const rest = waiting.length > 0 ? bytes : tryWrite(bytes);
    if (rest === undefined) return;
    if (waitingBytes > maxWaitingBytes) {
      dropped += 1;
      return;
    }
    if (waiting.length === 0) setTimeout(writeWaiting, retryMs).unref();
    waiting.push(rest);
    waitingBytes += rest.length;
  }

  process.on("exit", writeWaiting);
  return {
    closed: closed.signal,
    write(line) {
      if (closed.signal.aborted) return;
      const before = dropped;
      add(Buffer.from(isText ? formatLogLine(line) : line));
      if (before === 0 || dropped > before || waiting.length > 0) return;
      dropped = 0;
      onDropped(before);
    },
  };
}

/** Returns a descriptor of standard output that does not wait until a terminal or the other end of a pipe reads. */
function openStandardOutput(isTerminal: boolean): number {
  // Node makes pipes and sockets non-blocking when it opens them, but not terminals.
  process.stdout.on("error", () => {});
  if (!isTerminal) return 1;
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    // Another user's terminal, or not Linux.
    return 1;
  }
}

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
 * last: their stacks have further lines, which are indented. Nothing in it controls a terminal or looks like another
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
  return `${time.toTimeString().slice(0, 8)}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function escape(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}
