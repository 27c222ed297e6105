import { join } from "node:path";
import { median, type Target } from "../table.ts";
import { type Effort, type Entry, runRounds, type Series } from "./rounds.ts";
import { routes } from "./routes.ts";

/** The same servers without and with metrics; of the rounds of each, the one that took least. */
export async function measureMetrics({ folder, effort }: { folder: string; effort: Effort }): Promise<Target[]> {
  const targets: Target[] = [];
  for (const route of ["create", "list"] as const) {
    const entries = [false, true].map((metrics): Entry => {
      const name = metrics ? "on" : "off";
      const storeUrl = `sqlite:${join(folder, `metrics-${route}-${name}.db`)}`;
      const tasks = route === "list" ? 1e3 : 0;
      return { name, spec: { kind: "unreel", storeUrl, tasks, metrics }, connections: [64] };
    });
    const series = await runRounds(route, entries, effort);
    const least = (name: string) => Math.min(...of(series, name).map(({ cpuUs }) => cpuUs));
    const scrapes = of(series, "on").map(({ scrapeMs }) => scrapeMs);
    targets.push(
      {
        name: `${routes[route].method} CPU time, metrics off : on`,
        value: least("off") / least("on"),
        unit: "×",
        atLeast: 0.95,
      },
      { name: "a scrape, median", value: median(scrapes), unit: "ms", atMost: 20 },
    );
  }
  return targets;
}

function of(series: readonly Series[], name: string): Series["rounds"] {
  return series.find((one) => one.name === name)?.rounds ?? [];
}
