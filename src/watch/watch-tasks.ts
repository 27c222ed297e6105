import { type FollowOptions, followTasks } from "./follow-tasks.ts";
import { createBarView, createLineView, type Output } from "./views.ts";

interface WatchOptions extends Pick<FollowOptions, "url" | "key" | "signal"> {
  output: Output;
}

/**
 * Shows running tasks until `signal` is aborted: as progress bars if `output` is a terminal, else as a line
 * for each step. Retries while the service is unavailable.
 *
 * @throws Error if the service needs a key, or another one.
 */
export async function watchTasks({ output, ...options }: WatchOptions): Promise<void> {
  const view = output.isTTY === true ? createBarView(output) : createLineView(output);
  const { href } = options.url;
  const onConnect = (running: number) =>
    view.notify(`connected to ${href}${running === 0 ? ": no task is running" : ""}`);
  const onDisconnect = (reason: string) => view.notify(`${href}: ${reason}; retrying`);
  try {
    for await (const changes of followTasks({ ...options, onConnect, onDisconnect })) view.show(changes);
  } finally {
    view.close();
  }
}
