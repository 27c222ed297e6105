import { randomUUID } from "node:crypto";
import { startService } from "./service.ts";

interface CrashReport {
  kills: number;
  /** Requests that got a 201. */
  acknowledged: number;
  /** Requests that got no response because the process died. */
  unacknowledged: number;
  /** Acknowledged tasks that were missing after the restart. */
  lost: number;
  /** Idempotency keys with more than one stored task. */
  duplicated: number;
}

interface Sent {
  key: string;
  page: string;
  /** Absent if there was no response. */
  id?: string;
}

/**
 * Starts the real service on `dataDir`, has `clients` clients POST without pause, each request with its
 * own idempotency key, and kills it with SIGKILL after `perRound` acknowledged tasks. Each of the `kills`
 * rounds begins by repeating the requests that got no response. Counts after the last round.
 */
export async function crashRepeatedly(options: {
  dataDir: string;
  kills: number;
  clients: number;
  perRound: number;
}): Promise<CrashReport> {
  const { dataDir, kills, clients, perRound } = options;
  const sent: Sent[] = [];
  let unacknowledged = 0;
  for (let round = 0; round < kills; round++) {
    const service = await startService({
      DATA_DIR: dataDir,
      RESOLVER: "stub",
      CONCURRENCY: "0",
      LOG_LEVEL: "info",
    });
    const waiting = sent.filter((one) => one.id === undefined);
    for (const one of waiting) one.id = await post(service.url, one);
    const target = sent.length + perRound;
    const enough = Promise.withResolvers<void>();
    let acknowledged = sent.length;
    const client = async () => {
      for (;;) {
        const key = randomUUID();
        const one: Sent = { key, page: `https://example.com/${key}` };
        sent.push(one);
        try {
          one.id = await post(service.url, one);
        } catch {
          unacknowledged += 1;
          return;
        }
        acknowledged += 1;
        if (acknowledged >= target) enough.resolve();
      }
    };
    const running = Array.from({ length: clients }, client);
    await enough.promise;
    await service.end("SIGKILL");
    await Promise.all(running);
  }
  return { kills, unacknowledged, ...(await count(dataDir, sent)) };
}

async function post(url: string, { key, page }: Sent): Promise<string> {
  const response = await fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ url: page }),
  });
  const { id } = (await response.json()) as { id?: string };
  if (response.status !== 201 || id === undefined) {
    throw new Error(`POST /tasks/ returned ${response.status}`);
  }
  return id;
}

async function count(dataDir: string, sent: readonly Sent[]) {
  const service = await startService({ DATA_DIR: dataDir, RESOLVER: "stub", CONCURRENCY: "0" });
  const stored = new Map<string, string[]>();
  let next: string | null = "?limit=200";
  while (next !== null) {
    const page = (await (await fetch(new URL(next, `${service.url}/tasks/`))).json()) as {
      tasks: { id: string; url: string }[];
      next: string | null;
    };
    for (const { id, url } of page.tasks) stored.set(url, [...(stored.get(url) ?? []), id]);
    next = page.next;
  }
  await service.end("SIGTERM");
  const acknowledged = sent.filter((one) => one.id !== undefined);
  const lost = acknowledged.filter(({ page, id }) => !stored.get(page)?.includes(id!));
  const duplicated = [...stored.values()].filter((ids) => ids.length > 1);
  return { acknowledged: acknowledged.length, lost: lost.length, duplicated: duplicated.length };
}
