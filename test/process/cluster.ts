import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { commandWith, type ServiceProcess, startService } from "./service.ts";

/** Processes of one service: they share a database and a data folder. */
export interface Cluster extends AsyncDisposable {
  readonly dataDir: string;
  /** Starts one more process; `env` overrides that of the cluster, `starter` is the program that starts it. */
  start(role: Role, env?: Record<string, string>, starter?: readonly string[]): Promise<ServiceProcess>;
}

export type Role = "all" | "api" | "worker";

/** `env` is for all processes. Each marks its outgoing requests with its id as `x-process`. */
export function openCluster(storeUrl: string, env: Record<string, string> = {}): Cluster {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-cluster-"));
  const processes: ServiceProcess[] = [];
  return {
    dataDir,
    async start(role, given = {}, starter = []) {
      const environment = {
        ROLE: role,
        STORE_URL: storeUrl,
        DATA_DIR: dataDir,
        ALLOW_NETWORKS: "127.0.0.1/32",
        MIN_FREE_BYTES: "0",
        // Sites hold responses until other processes have started, however long a busy machine takes for that.
        IDLE_TIMEOUT_MS: "600000",
        ...env,
        ...given,
      };
      // Options of the command, unlike its environment, are passed on to worker processes.
      const mark = fileURLToPath(new URL("process-mark.js", import.meta.url));
      const started = await startService(environment, [...starter, ...commandWith("--import", mark)]);
      processes.push(started);
      return started;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map((each) => each.end("SIGKILL")));
      rmSync(dataDir, { recursive: true });
    },
  };
}
