import { expect, it } from "vitest";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { startCommand } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

const page = `https://video.example.com/${"long/".repeat(380)}`;

it.skipIf(process.platform === "win32")(
  "a service whose store is full refuses new tasks, still serves reads, and keeps every accepted task",
  async () => {
    const dataDir = makeFolder();
    const env = { DATA_DIR: dataDir, CONCURRENCY: "0" };
    const limited = ["sh", "-c", `ulimit -f 2048 && exec "$0" "$@"`, ...startCommand];
    const service = await startTestService(env, limited);
    const client = await openTaskClient(service.url);
    const accepted = await fill(client);
    const listed = await client.list();
    client.close();
    await service.end("SIGTERM");
    const again = await startTestService(env);
    const later = await openTaskClient(again.url);
    const kept = await later.list();
    await later.post(page);
    later.close();
    expect(accepted.length).toBeGreaterThan(20);
    expect(listed.map(({ id }) => id).toSorted()).toEqual(accepted);
    expect(kept.map(({ id }) => id).toSorted()).toEqual(accepted);
  },
);

/** Posts tasks until one is refused; returns the sorted ids of the accepted ones. */
async function fill(client: TaskClient): Promise<string[]> {
  const accepted: string[] = [];
  for (;;) {
    try {
      accepted.push((await client.post(page)).id);
    } catch (error) {
      expect(String(error)).toMatch(/returned 503: .*"code":"unavailable"/);
      return accepted.toSorted();
    }
  }
}
