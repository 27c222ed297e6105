import { format, printTable, type Target } from "../table.ts";
import type { Bench } from "./part.ts";
import { openBenchService } from "./service.ts";
import { quantiles } from "./service-meanwhile.ts";

/** Time from a POST until the client is notified that the task runs, one task after the other. */
export async function measureLatency({ base, maker, isQuick }: Bench): Promise<Target[]> {
  const page = `${base}/${maker.mp4("small", 1)}`;
  await using service = await openBenchService();
  const { client } = service;
  const latencies: number[] = [];
  for (let i = 0; i < (isQuick ? 50 : 250); i++) {
    const startMs = performance.now();
    const { id } = await client.post(page);
    await client.until(id, ({ state }) => state !== "queued");
    latencies.push(performance.now() - startMs);
    await client.ended(id);
    await client.request("DELETE", id);
  }
  const { p50Ms, p99Ms } = quantiles(latencies);
  const row = ["", `${latencies.length}`, format(p50Ms), format(p99Ms)];
  printTable("POST until the task runs", ["", "tasks", "p50 ms", "p99 ms"], [row]);
  return [{ name: "POST until the task runs, p99", value: p99Ms, unit: "ms", atMost: 50 }];
}
