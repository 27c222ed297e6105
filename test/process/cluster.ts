import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServiceProcess, startService } from "./service.ts";

/** Processes that are one service: on one database, and with one data folder. */
export interface Cluster extends AsyncDisposable {
  /** One process more. */
  start(role: Role, env?: Record<string, string>): Promise<ServiceProcess>;
}

export type Role = "all" | "api" | "worker";

/** `env` is for all of its processes, each of which marks its requests with `x-process`. */
export function openCluster(storeUrl: string, env: Record<string, string> = {}): Cluster {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-cluster-"));
  const processes: ServiceProcess[] = [];
  return {
    async start(role, given = {}) {
      const started = await startService({
        ROLE: role,
        STORE_URL: storeUrl,
        DATA_DIR: dataDir,
        ALLOW_NETWORKS: "127.0.0.1/32",
        MIN_FREE_BYTES: "0",
        NODE_OPTIONS: `--import=${new URL("process-mark.ts", import.meta.url).href}`,
        ...env,
        ...given,
      });
      processes.push(started);
      return started;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map((each) => each.end("SIGKILL")));
      rmSync(dataDir, { recursive: true });
    },
  };
}
