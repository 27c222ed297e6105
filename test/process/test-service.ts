import { onTestFinished } from "vitest";
import { type ServiceProcess, startService } from "./service.ts";

/** Starts the program as `startService` does, for this test: it is killed after the test if it still runs. */
export async function startTestService(...args: Parameters<typeof startService>): Promise<ServiceProcess> {
  const service = await startService(...args);
  onTestFinished(async () => void (await service.end("SIGKILL")));
  return service;
}
