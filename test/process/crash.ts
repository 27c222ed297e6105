import { randomUUID } from "node:crypto";
import { startService } from "./service.ts";

export interface CrashReport {
  kills: number;
  /** Requests that were answered with 201. */
  acknowledged: number;
  /** Requests that got no answer because the process died. */
  unanswered: number;
  /** Acknowledged tasks that were not there after the restart. */
  lost: number;
  /** Idempotency keys that more than one task was stored for. */
  duplicated: number;
}

interface Sent {
  key: string;
  page: string;
  /** Absent where no answer came. */
  id?: string;
}

/**
 * Starts the real service on `dataDir`, lets `clients` of them POST as fast as they can, each request
 * with an idempotency key of its own, kills it with SIGKILL once `perRound` are acknowledged, starts
 * it again, sends what got no answer again with the same key, and counts. `kills` times.
 */
export async function crashRepeatedly(options: {
  dataDir: string;
  kills: number;
  clients: number;
  perRound: number;
}): Promise<CrashReport> {
  const { dataDir, kills, clients, perRound } = options;
  const sent: Sent[] = [];
  let unanswered = 0;
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
          unanswered += 1;
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
  return { kills, unanswered, ...(await count(dataDir, sent)) };
}

async function post(url: string, { key, page }: Sent): Promise<string> {
  const answer = await fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ url: page }),
  });
  const { id } = (await answer.json()) as { id?: string };
  if (answer.status !== 201 || id === undefined) {
    throw new Error(`POST /tasks/ answered ${answer.status}`);
  }
  return id;
}

async function count(dataDir: string, sent: readonly Sent[]) {
  const service = await startService({ DATA_DIR: dataDir, RESOLVER: "stub", CONCURRENCY: "0" });
  const stored = new Map<string, string[]>();
  let next: string | null = "/tasks/?limit=200";
  while (next !== null) {
    const answer = (await (await fetch(service.url + next)).json()) as {
      tasks: { id: string; url: string }[];
      next: string | null;
    };
    for (const { id, url } of answer.tasks) stored.set(url, [...(stored.get(url) ?? []), id]);
    next = answer.next;
  }
  await service.end("SIGTERM");
  const acknowledged = sent.filter((one) => one.id !== undefined);
  const lost = acknowledged.filter(({ page, id }) => !stored.get(page)?.includes(id!));
  const duplicated = [...stored.values()].filter((ids) => ids.length > 1);
  return {
    acknowledged: acknowledged.length,
    lost: lost.length,
    duplicated: duplicated.length,
  };
}
