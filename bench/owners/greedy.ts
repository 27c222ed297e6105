import { workerData } from "node:worker_threads";
import { type WayName, ways } from "./ways.ts";

/** The thread of the greedy owner. */
const { name, service, secret, site } = workerData as Record<"service" | "secret" | "site", string> & { name: WayName };
await ways[name].greedy({ service, secret, slow: site });
