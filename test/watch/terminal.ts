import { EventEmitter, once } from "node:events";
import type { Output } from "../../src/watch/watch-tasks.ts";

export interface Terminal extends Output {
  /** All that was written. */
  text: string;
  /** Resolves when what was written matches. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
}

export function createTerminal(options: Pick<Output, "isTTY" | "rows"> = {}): Terminal {
  const written = new EventEmitter();
  const terminal: Terminal = {
    ...options,
    text: "",
    write(text) {
      terminal.text += text;
      written.emit("text");
    },
    async waitFor(pattern) {
      for (;;) {
        const found = pattern.exec(terminal.text);
        if (found !== null) return found;
        await once(written, "text");
      }
    },
  };
  return terminal;
}

/** What a terminal of endless width shows in the end: the sequences that the screen uses, obeyed. */
export function shown(text: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  for (const [token] of text.matchAll(/\u001B\[[?\d]*[A-Za-z]|\n|\r|[^\u001B\n\r]+/g)) {
    const up = /^\u001B\[(\d+)A$/.exec(token);
    if (up !== null) row -= Number(up[1]);
    else if (token === "\u001B[J") lines.splice(row, Infinity, "");
    else if (token === "\n") {
      row += 1;
      lines[row] ??= "";
    } else if (!/^[\u001B\r]/.test(token)) lines[row] += token;
  }
  return lines.slice(0, -1);
}
