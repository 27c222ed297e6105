import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Site } from "../media/site.ts";

/** Which processes of a cluster asked the site for a path. */
export interface Visits {
  /** `performance.now()` of the first request of each process, by its id, in order. */
  readonly firsts: ReadonlyMap<number, number>;
  readonly requests: number;
  /** Most processes that had an open request at one moment. */
  readonly mostAtOnce: number;
  /** Resolves once none of the requests so far is open. */
  over(): Promise<void>;
}

/** Counts from now on; `before` is waited for ahead of each answer. */
export function watchVisits(
  site: Site,
  path: string,
  before: () => Promise<unknown> = async () => {},
): Visits {
  const firsts = new Map<number, number>();
  const open = new Map<number, number>();
  const ends: Promise<unknown>[] = [];
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
    ends.push(once(response, "close"));
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
    async over() {
      await Promise.all(ends);
    },
  };
}

function senderOf({ headers, url }: IncomingMessage): number {
  const pid = Number(headers["x-process"]);
  if (Number.isInteger(pid)) return pid;
  throw new Error(`a request for ${url} does not tell which process sent it`);
}
