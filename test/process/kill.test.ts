import { expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../folder.ts";
import { openDatabase } from "../postgres/database.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { type ServiceProcess, startService } from "./service.ts";

it.each([
  ["SQLite", async () => "sqlite:"],
  ["Postgres", () => openDatabase()],
])("a service with %s that is killed has its tasks after the next start, and completes them", async (_, openStore) => {
  const site = await openSite();
  const env = {
    DATA_DIR: makeFolder(),
    STORE_URL: await openStore(),
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
  };
  const first = await start({ ...env, CONCURRENCY: "0" });
  const accepted = await first.client.post(site.url("film.mp4"));
  first.client.close();
  expect(await first.service.end("SIGKILL")).toEqual({ code: null, signal: "SIGKILL" });
  const second = await start(env);
  const task = await second.client.ended(accepted.id);
  expect(task).toMatchObject({ state: "succeeded", created_at: accepted.created_at });
  expect(film.equals(await (await second.client.file(task.id)).bytes())).toBe(true);
  second.client.close();
  expect(await second.service.end("SIGTERM")).toEqual({ code: 0, signal: null });
});

async function start(env: Record<string, string>): Promise<{ service: ServiceProcess; client: TaskClient }> {
  const service = await startService(env);
  onTestFinished(() => void service.process.kill("SIGKILL"));
  return { service, client: await openTaskClient(service.url) };
}
