import { randomUUID } from "node:crypto";
import { expectUnavailable, send } from "./outage-harness.ts";
import type { ServiceProcess } from "./service.ts";

/** A client that sends one request after the other. */
interface SteadyClient {
  /** Resolves once `count` more tasks have been created. */
  created(count: number): Promise<void>;
  /** Returns the ids of all created tasks. Rejects if a response was neither a success nor a proper 503. */
  stop(): Promise<Set<unknown>>;
}

/**
 * Posts tasks for `page`, reads the newest one and asks for readiness, in turn. A POST is repeated with its key until it
 * succeeds: one that was answered by 503 may have taken effect.
 */
export function startSteadyClient(service: ServiceProcess, page: string): SteadyClient {
  const ids = new Set<unknown>();
  const stopping = new AbortController();
  let next = Promise.withResolvers<void>();
  const stopped = run();
  stopped.catch((error: unknown) => next.reject(error));

  async function run(): Promise<void> {
    let path = "/tasks/";
    let key: string | null = null;
    while (key !== null || !stopping.signal.aborted) {
      key ??= randomUUID();
      const posted = await send(service, "/tasks/", page, { "idempotency-key": key });
      const read = [await send(service, path), await send(service, "/health/ready")];
      for (const response of [posted, ...read]) {
        if (response.status > 201) expectUnavailable(response);
      }
      if (posted.status !== 201) continue;
      const { id } = posted.body;
      ids.add(id);
      key = null;
      path = `/tasks/${String(id)}`;
      next.resolve();
      next = Promise.withResolvers();
    }
  }

  return {
    async created(count) {
      for (let left = count; left > 0; left -= 1) await next.promise;
    },
    async stop() {
      stopping.abort();
      await stopped;
      return ids;
    },
  };
}
