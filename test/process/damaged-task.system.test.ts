import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { openTaskClient } from "./download-client.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

const page = "https://video.example.com/watch";

it("a damaged task does not hide the others: it alone is an error, and can be deleted", async () => {
  const dataDir = makeFolder();
  const start = async () => {
    const service = await startTestService({ DATA_DIR: dataDir, CONCURRENCY: "0" });
    return { service, client: await openTaskClient(service.url) };
  };
  const before = await start();
  const { id } = await before.client.post(page);
  const other = await before.client.post(page);
  before.client.close();
  await before.service.end("SIGTERM");
  damage(join(dataDir, "tasks.db"), id);

  const { service, client } = await start();
  expect(await client.list()).toEqual([other]);
  for (const method of ["GET", "POST"]) {
    const url = `${service.url}/tasks/${id}${method === "POST" ? "/cancel" : ""}`;
    const response = await fetch(url, { method });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({
      code: "internal",
      retryable: false,
      detail: `the record of task ${id} is damaged: it is not JSON`,
    });
  }
  expect(await client.request("DELETE", id)).toBe(204);
  expect((await fetch(`${service.url}/tasks/${id}`)).status).toBe(404);
  client.close();
});

function damage(path: string, id: string): void {
  using db = new DatabaseSync(path);
  db.prepare("UPDATE tasks SET document = substr(document, 2) WHERE id = ?").run(id);
}
