import { followTasks } from "./follow-tasks.ts";
import { createLineView } from "./line-view.ts";
import { createBarView } from "./bar-view.ts";
import type { Output } from "./view.ts";

export interface WatchOptions {
  /** The service's base, with a slash at the end. */
  url: URL;
  output: Output;
  /** Ends it. */
  signal: AbortSignal;
}

/**
 * Shows running tasks as progress bars where `output` is a terminal, else as a line for each step, until
 * `signal` is aborted. A service that is away is waited for.
 */
export async function watchTasks({ url, output, signal }: WatchOptions): Promise<void> {
  const view = output.isTTY === true ? createBarView(output) : createLineView(output);
  const onTrouble = (reason: string) => view.say(`${url.href}: ${reason}; trying again`);
  try {
    for await (const changes of followTasks({ url, signal, onTrouble })) view.show(changes);
  } finally {
    view.close();
  }
}
