import type { WatchedChange } from "./responses.ts";

/** Where a view writes: a terminal, a file or a pipe. */
export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  /** Height of the terminal, lines. */
  rows?: number;
}

/** One way to show tasks. */
export interface View {
  show(changes: readonly WatchedChange[]): void;
  /** Shows a line that is not about a task. */
  notify(line: string): void;
  close(): void;
}
