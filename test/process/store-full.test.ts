import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { startService } from "./service.ts";

const main = fileURLToPath(new URL("../../src/start.js", import.meta.url));
const page = `https://video.example.com/${"long/".repeat(380)}`;

it.skipIf(process.platform === "win32")(
  "a service whose store has no room refuses new tasks, goes on answering, and keeps all that it has taken",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "unreel-store-full-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const env = { DATA_DIR: dataDir, CONCURRENCY: "0" };
    const limited = ["sh", "-c", `ulimit -f 2048 && exec "$0" "$@"`, process.execPath, main];
    const service = await startService(env, limited);
    onTestFinished(() => void service.end("SIGKILL"));
    const client = await openTaskClient(service.url);
    const taken = await fill(client);
    const listed = await client.list();
    client.close();
    await service.end("SIGTERM");
    const again = await startService(env);
    onTestFinished(() => void again.end("SIGKILL"));
    const later = await openTaskClient(again.url);
    const kept = await later.list();
    await later.post(page);
    later.close();
    expect(taken.length).toBeGreaterThan(20);
    expect(listed.map(({ id }) => id).toSorted()).toEqual(taken);
    expect(kept.map(({ id }) => id).toSorted()).toEqual(taken);
  },
);

/** The ids of all tasks that were taken until one was refused, in order. */
async function fill(client: TaskClient): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    try {
      taken.push((await client.post(page)).id);
    } catch (error) {
      expect(String(error)).toMatch(/answered 503: .*"code":"unavailable"/);
      return taken.toSorted();
    }
  }
}
