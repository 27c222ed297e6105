import { setImmediate as nextTurn } from "node:timers/promises";
import type { Agent, Dispatcher } from "undici";
import type { Deadline } from "./deadline.ts";
import type { HostSlots } from "./host-slots.ts";

/** One request and the header of its answer, before redirects and status are looked at. */
export interface Exchange {
  url: URL;
  status: number;
  headers: ReadonlyMap<string, string>;
  /** As sent, still encoded. The slot of the host is held until it is closed. */
  body: Dispatcher.ResponseData["body"];
}

export interface ExchangeOptions {
  agent: Agent;
  slots: HostSlots;
}

/** Sends GET `url` as soon as its host has a free slot. Rejects with undici's errors. */
export async function exchange(
  url: URL,
  fields: Record<string, string>,
  deadline: Deadline,
  { agent, slots }: ExchangeOptions,
): Promise<Exchange> {
  const release = await slots.acquire(url.host, deadline.signal);
  try {
    const sent = agent.request({
      method: "GET",
      origin: url.origin,
      path: url.pathname + url.search,
      headers: fields,
      signal: deadline.signal,
    });
    // Until there is a connection, undici does not look at the signal.
    const answer = await deadline.race(sent);
    // undici offers a connection again one turn of the loop after the body's end.
    answer.body.once("close", () => setImmediate(release)).on("error", () => {});
    const headers = Object.entries(answer.headers).map(joinedLines);
    return { url, status: answer.statusCode, headers: new Map(headers), body: answer.body };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Reads the rest of a body that nobody wants, so that the connection can serve the next request; if
 * it is long or slow, closes the connection instead. Never rejects.
 */
export async function discard(body: Exchange["body"]): Promise<void> {
  await body.dump({ limit: 64 * 1024, signal: AbortSignal.timeout(250) }).catch(() => {});
  await nextTurn();
}

/** Field lines of one name make one value (RFC 9110 §5.3). */
function joinedLines([name, value = ""]: [string, string | string[] | undefined]) {
  return [name, Array.isArray(value) ? value.join(", ") : value] as const;
}
