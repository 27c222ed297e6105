import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** Kills a process that may have ended; resolves once it has. */
export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
