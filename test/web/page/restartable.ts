import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type ServiceProcess, startService } from "../../process/service.ts";

export interface Restartable {
  url(): string;
  start(): Promise<void>;
  /** As a power cut does. */
  kill(): Promise<void>;
}

/** The real program, which keeps its port and its data when it is started again. */
export async function openService(): Promise<Restartable> {
  const folder = await mkdtemp(join(tmpdir(), "unreel-page-"));
  let service: ServiceProcess | undefined;
  let port = "0";
  const start = async (): Promise<void> => {
    service = await startService({ PORT: port, DATA_DIR: folder, ALLOW_NETWORKS: "127.0.0.0/8" });
    ({ port } = new URL(service.url));
  };
  const kill = async (): Promise<void> => {
    await service?.end("SIGKILL");
  };
  onTestFinished(async () => {
    await kill();
    await rm(folder, { recursive: true });
  });
  await start();
  return { url: () => service?.url ?? "", start, kill };
}
