import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { buildApp } from "./app.ts";
import { getInfo, pageUrl, postTask } from "./requests.ts";

/** What a thread of this file posts when it ends. */
export interface ClosingResult {
  statusCodes: number[];
  /** What is open before the app is built, while it listens, and once it is closed. */
  before: string[];
  listening: string[];
  closed: string[];
  /** What is in the temporary folder in the end. */
  temporary: string[];
}

/** Turns of the event loop in which handles that are being closed may end. */
const maxTurns = 100_000;

/** Builds, uses and closes an app alone in its thread, where nothing of others is open. */
async function main(): Promise<ClosingResult> {
  const before = openResources();
  const app = await buildApp();
  await app.listen({ port: 0, host: "127.0.0.1" });
  const created = await postTask(app, { url: pageUrl });
  const { id } = created.json<{ id: string }>();
  const info = await getInfo(app, pageUrl);
  const file = await app.inject(`/tasks/${id}/file`);
  const removed = await app.inject({ method: "DELETE", url: `/tasks/${id}` });
  const listening = openResources();
  await app.close();
  for (let turn = 0; turn < maxTurns && openResources().length > before.length; turn += 1) {
    await nextTurn();
  }
  return {
    statusCodes: [created, info, file, removed].map(({ statusCode }) => statusCode),
    before,
    listening,
    closed: openResources(),
    temporary: readdirSync(tmpdir()),
  };
}

function openResources(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => name !== "Immediate")
    .toSorted();
}

parentPort?.postMessage(await main());
