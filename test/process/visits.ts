import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Site } from "../media/site.ts";

/** Requests of a cluster's processes for one path of a site. */
export interface Visits {
  /** `performance.now()` of each process's first request, by process id, in order. */
  readonly firsts: ReadonlyMap<number, number>;
  readonly requests: number;
  /** Largest number of processes with an open request at one time. */
  readonly mostAtOnce: number;
  /** Resolves once all requests so far are closed. */
  closed(): Promise<void>;
}

/** Counts from now on; each response waits for `before`. */
export function watchVisits(site: Site, path: string, before: () => Promise<unknown> = async () => {}): Visits {
  const firsts = new Map<number, number>();
  const open = new Map<number, number>();
  const closes: Promise<unknown>[] = [];
  let requests = 0;
  let mostAtOnce = 0;
  site.answer(path, async (response, serve, request) => {
    const pid = senderOf(request);
    requests += 1;
    if (!firsts.has(pid)) firsts.set(pid, performance.now());
    open.set(pid, (open.get(pid) ?? 0) + 1);
    mostAtOnce = Math.max(mostAtOnce, open.size);
    response.once("close", () => {
      const left = (open.get(pid) ?? 0) - 1;
      if (left > 0) open.set(pid, left);
      else open.delete(pid);
    });
    closes.push(once(response, "close"));
    await before();
    await serve();
  });
  return {
    firsts,
    get requests() {
      return requests;
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    async closed() {
      await Promise.all(closes);
    },
  };
}

function senderOf({ headers, url }: IncomingMessage): number {
  const pid = Number(headers["x-process"]);
  if (Number.isInteger(pid)) return pid;
  throw new Error(`a request for ${url} does not say which process sent it`);
}
