import { renameSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

// Loaded before the service: on SIGWINCH, writes the delays of its event loop to a file and resets them.
// (SIGUSR2 would stop the service.)
if (isMainThread) {
  const file = process.env["LOOP_DELAYS_FILE"] ?? "loop-delays.json";
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  process.on("SIGWINCH", () => {
    const ms = (nanoseconds: number) => nanoseconds / 1e6;
    const told = {
      p50Ms: ms(delays.percentile(50)),
      p99Ms: ms(delays.percentile(99)),
      maxMs: ms(delays.max),
    };
    writeFileSync(`${file}.new`, JSON.stringify(told));
    renameSync(`${file}.new`, file);
    delays.reset();
  });
}
