import { createServer, type ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import type { Task } from "../../src/model/task.ts";
import type { ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";
import { listen } from "../net/listen.ts";

/** A site whose pages are sent when the test says so. */
async function openSite() {
  const pages = new Map<string, PromiseWithResolvers<ServerResponse>>();
  const page = (path: string) => {
    const asked = pages.get(path) ?? Promise.withResolvers<ServerResponse>();
    pages.set(path, asked);
    return asked;
  };
  const server = createServer(({ url = "" }, response) => page(url).resolve(response));
  const port = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: (path: string) => `http://127.0.0.1:${port}${path}`,
    asked: (path: string) => page(path).promise,
  };
}

async function start(dataDir: string, env: Record<string, string> = {}): Promise<ServiceProcess> {
  return startTestService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.0/8",
    MIN_FREE_BYTES: "0",
    ...env,
  });
}

async function listTasks({ url }: ServiceProcess): Promise<Task[]> {
  return ((await (await fetch(`${url}/tasks/`)).json()) as { tasks: Task[] }).tasks;
}

it("requeues what runs while requests in flight finish, and only then closes the store", async () => {
  const dataDir = makeFolder();
  const site = await openSite();
  const service = await start(dataDir);
  let log = "";
  service.process.stdout!.on("data", (chunk: string) => void (log += chunk));
  await fetch(`${service.url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: site.url("/task") }),
  });
  await site.asked("/task");
  const info = fetch(`${service.url}/info?url=${encodeURIComponent(site.url("/info"))}`);
  const page = await site.asked("/info");
  const ended = service.end("SIGTERM");
  await expect.poll(() => log).toContain("task requeued");
  page.writeHead(200, { "content-type": "text/html" }).end("<title>A film</title>");
  expect((await info).status).toBe(200);
  expect(await ended).toEqual({ code: 0, signal: null });
  const lines = log.trimEnd().split("\n");
  const levels = lines.map((line) => (JSON.parse(line) as { level: number }).level);
  expect(levels.filter((level) => level > 30)).toEqual([]);
  const again = await start(dataDir, { CONCURRENCY: "0" });
  expect(await listTasks(again)).toMatchObject([{ state: "queued", attempts: 0 }]);
});
