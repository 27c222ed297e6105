import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type ServiceProcess, startService } from "./service.ts";

export type Code = "EIO" | "ENOSPC" | "EPIPE";

export interface Fault {
  /** Which call fails, the first is 1; 0: none. */
  n: number;
  code: Code;
  /** All calls that follow fail too. */
  isLasting?: boolean;
}

/** What happened since the order before. */
export interface FaultReport {
  calls: number;
  /** The call that failed last. */
  failed: string | null;
}

/** The real service on a disk that fails when it is told to. */
export interface FaultyService extends ServiceProcess {
  arm(fault: Fault): Promise<FaultReport>;
  disarm(): Promise<FaultReport>;
  /** What it has written to its log since it began to listen. */
  readonly log: string;
  /** What of `files` and `parts` it holds open, where the system tells it. */
  openFiles(): string[];
}

export async function startFaultyService(
  dataDir: string,
  env: Record<string, string>,
): Promise<FaultyService> {
  const socketPath = join(dataDir, "faults.socket");
  const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const command = [
    process.execPath,
    "--import",
    pathOf("disk-faults-preload.ts"),
    pathOf("../../src/start.js"),
  ];
  const service = await startService(
    { ...env, DATA_DIR: dataDir, DISK_FAULTS: socketPath },
    command,
  );
  let log = "";
  service.process.stdout!.on("data", (text: string) => (log += text));
  const arm = ({ n, code, isLasting = false }: Fault) =>
    order(socketPath, `/?n=${n}&code=${code}&lasting=${Number(isLasting)}`);
  return {
    ...service,
    arm,
    disarm: () => arm({ n: 0, code: "EIO" }),
    get log() {
      return log;
    },
    openFiles: () => openFiles(service.process.pid, dataDir),
  };
}

async function order(socketPath: string, path: string): Promise<FaultReport> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request({ socketPath, path }, resolve).once("error", reject).end();
  return (await json(await promise)) as FaultReport;
}

function openFiles(pid: number | undefined, folder: string): string[] {
  const handles = `/proc/${pid}/fd`;
  if (!existsSync(handles)) return [];
  const paths = readdirSync(handles).map((fd) => linkOf(join(handles, fd)));
  return paths.filter((path) =>
    ["files", "parts"].some((name) => path.startsWith(join(folder, name))),
  );
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
