import type { TaskEvent } from "./responses.ts";

/** Where text goes: a terminal, or anything else that takes lines. */
export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  /** Height of the terminal, lines. */
  rows?: number;
}

export interface View {
  show(changes: readonly TaskEvent[]): void;
  /** Shows a line that is not about a task. */
  say(line: string): void;
  close(): void;
}
