import { ask, expectAway } from "./outage-harness.ts";
import type { ServiceProcess } from "./service.ts";

/** A client that asks all the time. */
export interface SteadyClient {
  /** The longest that an answer took so far. */
  readonly longestMs: number;
  /** Resolves when `count` more tasks have been taken. */
  taken(count: number): Promise<void>;
  /** The ids of all tasks that were taken. Rejects where an answer was neither a success nor a good refusal. */
  stop(): Promise<Set<unknown>>;
}

/** Posts tasks for `page` and reads, one request after the other. */
export function startSteadyClient(service: ServiceProcess, page: string): SteadyClient {
  const ids = new Set<unknown>();
  const life = new AbortController();
  let longestMs = 0;
  let news = Promise.withResolvers<void>();
  const over = run();
  over.catch((error: unknown) => news.reject(error));

  async function run(): Promise<void> {
    for (let path = "/tasks/"; !life.signal.aborted;) {
      const answer = await ask(service, "/tasks/", page);
      const read = [await ask(service, path), await ask(service, "/health/ready")];
      for (const each of [answer, ...read]) {
        longestMs = Math.max(longestMs, each.ms);
        if (each.status > 201) expectAway(each);
      }
      if (answer.status !== 201) continue;
      const { id } = answer.body;
      ids.add(id);
      path = `/tasks/${String(id)}`;
      news.resolve();
      news = Promise.withResolvers();
    }
  }

  return {
    get longestMs() {
      return longestMs;
    },
    async taken(count) {
      for (let left = count; left > 0; left -= 1) await news.promise;
    },
    async stop() {
      life.abort();
      await over;
      return ids;
    },
  };
}
