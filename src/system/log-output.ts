import { constants, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { formatLogLine } from "./log-line.ts";

type LogFormat = "auto" | "json" | "text";

interface LogOutput {
  /** Writes a line without ever waiting: see `openLogOutput`. */
  write(line: string): void;
  /** Aborted once nobody can read the log any more: its terminal or the other end of its pipe was closed. */
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
