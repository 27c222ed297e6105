import { onTestFinished } from "vitest";
import { makeFolder } from "../../folder.ts";
import { type ServiceProcess, startService } from "../../process/service.ts";

interface Restartable {
  url(): string;
  start(): Promise<void>;
  /** As a power cut does. */
  kill(): Promise<void>;
}

/** The real program, which keeps its port and its data when it is started again. */
export async function openService(): Promise<Restartable> {
  const folder = makeFolder();
  let service: ServiceProcess | undefined;
  let port = "0";
  const start = async (): Promise<void> => {
    service = await startService({ PORT: port, DATA_DIR: folder, ALLOW_NETWORKS: "127.0.0.0/8" });
    ({ port } = new URL(service.url));
  };
  const kill = async (): Promise<void> => {
    await service?.end("SIGKILL");
  };
  onTestFinished(kill);
  await start();
  return { url: () => service?.url ?? "", start, kill };
}
