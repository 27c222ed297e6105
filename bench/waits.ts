import { mkdtemp, readFile, rm } from "node:fs/promises";
import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startService } from "../test/process/service.ts";
import { format, printTable, printTargets } from "./table.ts";

/**
 * What clients that wait for tasks cost, and how soon they know: `node bench/waits.ts [--clients 10000] [--tasks 100]`. The clients
 * share the tasks; each task is canceled, and its clients measure how long after that request they have their responses.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { clients: { type: "string", default: "10000" }, tasks: { type: "string", default: "100" } },
  });
  const [clients, tasks] = [Number(values.clients), Number(values.tasks)];
  const folder = await mkdtemp(join(tmpdir(), "unreel-waits-"));
  const env = { DATA_DIR: folder, CONCURRENCY: "0", RESOLVER: "stub" };
  const service = await startService(env);
  try {
    const { url } = service;
    const ids = await Promise.all(Array.from({ length: tasks }, (_, n) => addTask(url, n)));
    const before = await residentMiB(service.process.pid);
    const waiting = new Map(ids.map((id) => [id, [] as Promise<number>[]]));
    for (let n = 0; n < clients; n++) {
      const id = ids[n % tasks]!;
      waiting.get(id)!.push((await startWaiting(url, id)).arrived);
    }
    const meanwhile = await residentMiB(service.process.pid);
    const delays: number[] = [];
    for (const id of ids) {
      const startMs = performance.now();
      await fetch(`${url}/tasks/${id}/cancel`, { method: "POST" });
      for (const arrivedMs of await Promise.all(waiting.get(id)!)) delays.push(arrivedMs - startMs);
    }
    delays.sort((a, b) => a - b);
    const at = (share: number) => delays[Math.min(delays.length - 1, Math.floor(share * delays.length))] ?? Number.NaN;
    const added = meanwhile - before;
    const head = ["clients", "tasks", "p50 ms", "p99 ms", "longest ms", "RSS before MiB", "added MiB", "kB a client"];
    const cells = [at(0.5), at(0.99), at(1), before, added, (added * 1024) / clients].map(format);
    printTable("clients that wait for the end of a task", head, [[`${clients}`, `${tasks}`, ...cells]]);
    printTargets([
      { name: "p99 from the end of a task to the response", value: at(0.99), unit: "ms", atMost: 100 },
      { name: "memory of the clients that wait", value: added, unit: "MiB", atMost: 100 },
    ]);
  } finally {
    await service.end("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

async function addTask(url: string, n: number): Promise<string> {
  const response = await fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: `https://example.com/watch/${n}` }),
  });
  return ((await response.json()) as { id: string }).id;
}

/** Sends a request that waits; resolves once it is sent. `arrived`: when its response arrives. */
async function startWaiting(url: string, id: string): Promise<{ arrived: Promise<number> }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  const arrived = new Promise<number>((resolve, reject) => {
    socket.once("data", () => {
      resolve(performance.now());
      socket.destroy();
    });
    socket.once("error", reject);
    socket.once("end", () => reject(new Error("a client was cut off")));
  });
  socket.write(`GET /tasks/${id} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nPrefer: wait=60\r\n\r\n`);
  return { arrived };
}

async function residentMiB(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

await main();
