import type { BucketDefinition } from "./definitions.ts";

export type DurationSeries = ReturnType<ReturnType<typeof createDurations>["series"]>;

/**
 * Creates a histogram for what happens with every request: an observation of prom-client takes 0.5 µs, a whole request
 * about 30 µs.
 */
export function createDurations({ name, help, buckets: bounds }: BucketDefinition) {
  const texts = new Map<string, () => string>();
  const all = new Map<string, ReturnType<typeof create>>();

  function create(labels: string) {
    const counts = bounds.map(() => 0);
    let count = 0;
    let sum = 0;
    texts.set(labels, () => {
      if (count === 0) return "";
      let below = 0;
      const buckets = bounds.map((bound, i) => {
        below += counts[i] ?? 0;
        return `${name}_bucket{le="${bound}",${labels}} ${below}\n`;
      });
      const rest = `${name}_bucket{le="+Inf",${labels}} ${count}\n`;
      return `${buckets.join("")}${rest}${name}_sum{${labels}} ${sum}\n${name}_count{${labels}} ${count}\n`;
    });
    return {
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
      `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${[...texts.values()].map((each) => each()).join("")}`,
  };
}

function quote(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
