import { constants, PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { loadProgram } from "../../../system/load-program.js";

await loadProgram(new URL("./worker.ts", import.meta.url));
letHeapGrow();

/**
 * Lets the heap grow to three times what is alive before V8 collects garbage again, as long as that is little: its own limit is just above
 * the size of the program. `--initial-old-space-size` would do so too, but costs each start 20 ms, as in load-program.js.
 */
function letHeapGrow() {
  const maxAliveBytes = 24 << 20;
  setFlagsFromString("--heap-growing-percent=200");
  const observer = new PerformanceObserver((list) => {
    const entries = /** @type {import("node:perf_hooks").PerformanceNodeEntry[]} */ (list.getEntries());
    const isMajor = entries.some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR);
    if (!isMajor || getHeapStatistics().used_heap_size < maxAliveBytes) return;
    observer.disconnect();
    setFlagsFromString("--heap-growing-percent=0");
  });
  observer.observe({ entryTypes: ["gc"] });
}
