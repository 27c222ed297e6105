import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { childrenOf } from "./child-processes.ts";
import { commandWith, type ServiceProcess, startService } from "./service.ts";

export type FaultCode = "EIO" | "ENOSPC" | "EPIPE";

/** One call that fails: the `nth` of its kind, from 1. */
export interface SingleFault {
  kind: string;
  nth: number;
  code: FaultCode;
}

/** All calls fail from the one with number `from` on, whatever their kind. */
export interface LastingFault {
  from: number;
  code: FaultCode;
}

export type Fault = SingleFault | LastingFault;

/** What happened since the last request. */
interface FaultReport {
  /** How many calls there were, by their kind: what is done to which file, as `open parts/ID/result`. */
  calls: Record<string, number>;
  /** The call that failed last. */
  failed: string | null;
}

/** The real service on a disk that fails on request. */
interface FaultyService extends ServiceProcess {
  arm(fault: Fault): Promise<FaultReport>;
  disarm(): Promise<FaultReport>;
  /** Its log since it began to listen. */
  readonly log: string;
  /** Paths in `files` and `parts` that it or a worker of it holds open; empty without /proc. */
  openFiles(): string[];
}

export async function startFaultyService(dataDir: string, env: Record<string, string>): Promise<FaultyService> {
  const socketPath = join(dataDir, "faults.socket");
  const preload = fileURLToPath(new URL("disk-faults-preload.ts", import.meta.url));
  const service = await startService(
    { ...env, DATA_DIR: dataDir, DISK_FAULTS: socketPath },
    commandWith("--import", preload),
  );
  let log = "";
  service.process.stdout!.on("data", (text: string) => (log += text));
  const arm = (fault?: Fault) => {
    const query = Object.entries(fault ?? {}).map(([name, value]) => [name, String(value)]);
    return request(socketPath, `/?${new URLSearchParams(query).toString()}`);
  };
  return {
    ...service,
    arm,
    disarm: () => arm(),
    get log() {
      return log;
    },
    openFiles: () => {
      const pid = service.process.pid ?? 0;
      return [pid, ...childrenOf(pid)].flatMap((each) => openFiles(each, dataDir));
    },
  };
}

async function request(socketPath: string, path: string): Promise<FaultReport> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  get({ socketPath, path }, resolve).once("error", reject);
  return (await json(await promise)) as FaultReport;
}

function openFiles(pid: number, folder: string): string[] {
  const handles = `/proc/${pid}/fd`;
  if (!existsSync(handles)) return [];
  const paths = readdirSync(handles).map((fd) => linkOf(join(handles, fd)));
  return paths.filter((path) => ["files", "parts"].some((name) => path.startsWith(join(folder, name))));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
