import { Counter, type Registry } from "prom-client";
import { type BucketDefinition, durations, requests } from "./definitions.ts";
import type { SeenRequest } from "../http/server/observe-requests.ts";

/** A route and a method. */
interface Operation {
  method: string;
  route: string;
  byStatus: Map<SeenRequest["status"], number>;
  durations: ReturnType<ReturnType<typeof createDurations>["series"]>;
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

/**
 * Creates a histogram for what happens with every request: an observation of prom-client takes 0.5 µs, a whole request
 * about 30 µs.
 */
export function createDurations({ name, help, buckets: bounds }: BucketDefinition) {
  const all = new Map<string, ReturnType<typeof create>>();

  function create(labels: string) {
    const counts = bounds.map(() => 0);
    let count = 0;
    let sum = 0;
    return {
      text(): string {
        if (count === 0) return "";
        let below = 0;
        const buckets = bounds.map((bound, i) => {
          below += counts[i] ?? 0;
          return `${name}_bucket{le="${bound}",${labels}} ${below}\n`;
        });
        const rest = `${name}_bucket{le="+Inf",${labels}} ${count}\n`;
        return `${buckets.join("")}${rest}${name}_sum{${labels}} ${sum}\n${name}_count{${labels}} ${count}\n`;
      },
      observe(seconds: number): void {
        count += 1;
        sum += seconds;
        const bucket = bounds.findIndex((bound) => seconds <= bound);
        if (bucket >= 0) counts[bucket] = (counts[bucket] ?? 0) + 1;
      },
    };
  }

  return {
    /** Returns the series with these labels; keep it, as finding it takes longer than observing. */
    series(labels: Readonly<Record<string, string>>) {
      const text = Object.entries(labels)
        .map(([label, value]) => `${label}=${quote(value)}`)
        .join(",");
      return all.getOrInsertComputed(text, create);
    },
    /** Returns all series that were observed, in the text format of Prometheus, version 0.0.4. */
    text: (): string =>
      `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${[...all.values()].map((each) => each.text()).join("")}`,
  };
}

function quote(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
