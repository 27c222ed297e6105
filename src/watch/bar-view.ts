import type { Task } from "../task.ts";
import { printable, taskLine } from "./task-line.ts";
import type { Output, View } from "./view.ts";

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
/** Lines that are too long are cut by the terminal, so that each takes one row of it. */
const cutLines = "\u001B[?7l";
const wrapLines = "\u001B[?7h";
const clearBelow = "\u001B[J";

/** Running tasks as bars that stay in place; what has ended scrolls away above them. */
export function createBarView(output: Output): View {
  const running = new Map<string, Task>();
  let barCount = 0;

  /** Puts `lines` where the bars were, and the bars below. */
  function draw(lines: readonly string[]): void {
    const back = barCount === 0 ? "" : `\u001B[${barCount}A`;
    const bars = barsOf([...running.values()], (output.rows ?? 24) - 1);
    barCount = bars.length;
    const text = [...lines, ...bars].map((line) => `${line}\n`).join("");
    output.write(`${hideCursor}${cutLines}${back}\r${clearBelow}${text}${wrapLines}`);
  }

  return {
    show(changes) {
      const ended: string[] = [];
      for (const { type, task } of changes) {
        if (type === "task" && task.state === "running") {
          running.set(task.id, task);
        } else {
          const wasRunning = running.delete(task.id);
          if (type === "task" && (wasRunning || task.state !== "queued")) {
            ended.push(taskLine(task));
          }
        }
      }
      draw(ended);
    },
    say: (line) => draw([printable(line)]),
    close: () => output.write(showCursor),
  };
}

/** As many as the terminal has room for; those above would be out of the cursor's reach. */
function barsOf(tasks: readonly Task[], room: number): string[] {
  if (tasks.length <= room) return tasks.map(taskLine);
  const shown = Math.max(0, room - 1);
  return [...tasks.slice(0, shown).map(taskLine), `… and ${tasks.length - shown} more`];
}
