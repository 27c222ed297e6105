import { Counter, type Registry } from "prom-client";
import type { SeenRequest } from "../http/server/observe-requests.ts";
import { durations, requests } from "./definitions.ts";
import { createDurations, type DurationSeries } from "./durations.ts";

/** A route and a method. */
interface Operation {
  method: string;
  route: string;
  byStatus: Map<SeenRequest["status"], number>;
  durations: DurationSeries;
}

/** Creates the metrics of requests; to observe one takes next to no time. */
export function createRequestMetrics(registry: Registry) {
  const operations = new Map<string, Map<string, Operation>>();
  const seconds = createDurations(durations.requestSeconds);
  const counter: Counter = new Counter({
    ...requests,
    registers: [registry],
    collect() {
      counter.reset();
      for (const { method, route, byStatus } of operations.values().flatMap((each) => each.values())) {
        for (const [status, count] of byStatus) counter.inc({ method, route, status }, count);
      }
    },
  });

  function addOperation(method: string, route: string): Operation {
    const series = seconds.series({ method, route });
    const operation = { method, route, byStatus: new Map(), durations: series };
    operations.getOrInsertComputed(route, () => new Map()).set(method, operation);
    return operation;
  }

  return {
    observe({ method, route, status, seconds: tookS }: SeenRequest): void {
      const operation = operations.get(route)?.get(method) ?? addOperation(method, route);
      operation.byStatus.set(status, (operation.byStatus.get(status) ?? 0) + 1);
      if (status !== "aborted") operation.durations.observe(tookS);
    },
    /** Returns the series that are not in the registry. */
    text: seconds.text,
  };
}
