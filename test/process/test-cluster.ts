import { onTestFinished } from "vitest";
import type { WhenOver } from "../media/test-site.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import type { ServiceProcess } from "./service.ts";

/** Opens a cluster on the database; ended after the test. */
export function openTestCluster(
  storeUrl: string,
  env: Record<string, string> = {},
  whenOver: WhenOver = onTestFinished,
): Cluster {
  const cluster = openCluster(storeUrl, env);
  whenOver(() => cluster[Symbol.asyncDispose]());
  return cluster;
}

/** Opens a client of the process; closed after the test. */
export async function clientOf({ url }: ServiceProcess, whenOver: WhenOver = onTestFinished): Promise<TaskClient> {
  const client = await openTaskClient(url);
  whenOver(() => client.close());
  return client;
}
