import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { OwnersSite } from "./site.ts";

export interface Caller {
  /** URL of the service. */
  service: string;
  /** Secret of the caller's key. */
  secret: string;
}

/** Sends a request; resolves with whether it got what it asked for. */
export type Requester = (secret: string) => Promise<boolean>;

interface Way {
  /** What the others ask for. */
  others: string;
  /** Requests of all others together. */
  perSecond: number;
  request(other: Caller & { site: OwnersSite }): Promise<boolean>;
  /** What the greedy owner does, over and over, until its thread ends; `slow` is the URL of the site that never answers. */
  greedy(eve: Caller & { slow: string }): Promise<unknown>;
}

export const ways = {
  "slow pages": {
    others: "GET /info",
    perSecond: 99,
    request: ({ site, ...bob }) => isOk(call(bob, infoPath(site.url(`page/${randomUUID()}`)))),
    greedy: ({ slow, ...eve }) => atATime(200, () => patiently(call(eve, infoPath(`${slow}${randomUUID()}`)))),
  },
  "event streams": {
    others: "GET /tasks/events, first bytes",
    perSecond: 99,
    async request(bob) {
      const response = await call(bob, "/tasks/events");
      const reader = response.body?.getReader();
      await reader?.read();
      await reader?.cancel();
      return response.ok;
    },
    async greedy(eve) {
      const streams = await Promise.all(Array.from({ length: 1_000 }, () => call(eve, "/tasks/events")));
      await Promise.all(streams.map(async ({ body }) => Array.fromAsync(body ?? [])));
    },
  },
  "slow thumbnails": {
    others: "GET /info/thumbnail",
    perSecond: 99,
    request: ({ site, ...bob }) => isOk(call(bob, thumbnailPath(site.url(`page/${randomUUID()}`)))),
    greedy: ({ slow, ...eve }) =>
      atATime(200, () => patiently(call(eve, thumbnailPath(`${slow}page/image/${randomUUID()}`)))),
  },
  "slow receivers": {
    others: "from a task's end to its message",
    perSecond: 99,
    async request({ site, ...bob }) {
      const id = await post(bob, site.url(`page/${randomUUID()}`));
      const received = site.received(id);
      const isCanceled = await isOk(call(bob, `/tasks/${id}/cancel`, {}));
      await received;
      return isCanceled;
    },
    greedy: (eve) =>
      atATime(4, async () => {
        const id = await post(eve, `${eve.slow}${randomUUID()}`);
        await isOk(call(eve, `/tasks/${id}/cancel`, {}));
        await wait(20);
      }),
  },
  "long records": {
    others: "GET /tasks/",
    perSecond: 99,
    request: (bob) => isOk(call(bob, "/tasks/")),
    greedy: (eve) => atATime(4, () => isOk(call(eve, "/tasks/?limit=100"))),
  },
  "many requests": {
    others: "GET /tasks/?limit=1",
    perSecond: 99,
    request: (bob) => isOk(call(bob, "/tasks/?limit=1")),
    greedy: (eve) => atATime(300, () => isOk(call(eve, "/tasks/?limit=1"))),
  },
  "queued tasks": {
    others: "from POST to a file",
    perSecond: 5,
    async request({ site, ...bob }) {
      const id = await post(bob, site.url(`film/${randomUUID()}.mp4`));
      for (;;) {
        const { state } = (await (await call(bob, `/tasks/${id}`)).json()) as { state: string };
        if (state === "succeeded" || state === "failed") return state === "succeeded";
        await wait(20);
      }
    },
    async greedy(eve) {
      await Promise.all(Array.from({ length: 1_000 }, () => post(eve, `${eve.slow}film/${randomUUID()}.mp4`)));
      await atATime(4, async () => {
        await post(eve, `${eve.slow}film/${randomUUID()}.mp4`);
        await wait(100);
      });
    },
  },
} satisfies Record<string, Way>;

export type WayName = keyof typeof ways;

function call({ service, secret }: Caller, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, ...(body && { "content-type": "application/json" }) };
  return fetch(service + path, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
}

const infoPath = (page: string) => `/info?url=${encodeURIComponent(page)}`;
const thumbnailPath = (page: string) => `/info/thumbnail?url=${encodeURIComponent(page)}`;

async function isOk(called: Promise<Response>): Promise<boolean> {
  const response = await called;
  await response.arrayBuffer();
  return response.ok;
}

/** Waits as long as a refusal says. */
async function patiently(called: Promise<Response>): Promise<void> {
  const response = await called;
  await response.arrayBuffer();
  await wait(1_000 * Number(response.headers.get("retry-after") ?? 0));
}

async function post(caller: Caller, url: string): Promise<string> {
  const response = await call(caller, "/tasks/", { url });
  const { id } = (await response.json()) as { id?: string };
  if (id === undefined) throw new Error(`POST /tasks/ answered ${response.status}`);
  return id;
}

async function atATime(count: number, act: () => Promise<unknown>): Promise<never> {
  const repeat = async (): Promise<never> => {
    for (;;) await act();
  };
  return Promise.race(Array.from({ length: count }, repeat));
}
