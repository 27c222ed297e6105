import { createHash } from "node:crypto";
import { expect, onTestFinished } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { type Cluster, openCluster, type Role } from "./cluster.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import type { ServiceProcess } from "./service.ts";

/** The film and as much room to grow that it is three megabytes. */
const short = readMedium("index-first.mp4");
const room = Buffer.alloc(3_000_000 - short.length, "room");
room.writeUInt32BE(room.length, 0);
room.write("free", 4);
const films = new Map([
  ["short.mp4", resource("video/mp4", short)],
  ["long.mp4", resource("video/mp4", Buffer.concat([short, room]))],
]);
const hashes = [...films.values()].map(({ body }) => hashOf(body));

/** Serves `long.mp4` in `seconds`, and `short.mp4` at the same pace. */
export async function openFilmSite(seconds: number): Promise<Site> {
  const site = await startSite(films, { bytesPerSecond: 3_000_000 / seconds });
  onTestFinished(() => site.close());
  return site;
}

/** A process and the lines of its log. */
export interface LoggedProcess extends ServiceProcess {
  log: Record<string, unknown>[];
}

export function openService(storeUrl: string): Cluster {
  const cluster = openCluster(storeUrl, { CONCURRENCY: "8", CONCURRENCY_PER_HOST: "8" });
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  return cluster;
}

export async function startLogged(cluster: Cluster, role: Role): Promise<LoggedProcess> {
  const service = await cluster.start(role);
  const log: LoggedProcess["log"] = [];
  let rest = "";
  service.process.stdout!.on("data", (chunk: string) => {
    const whole = (rest + chunk).split("\n");
    rest = whole.pop() ?? "";
    log.push(...whole.map((line) => JSON.parse(line) as Record<string, unknown>));
  });
  return { ...service, log };
}

export async function clientOf({ url }: ServiceProcess): Promise<TaskClient> {
  const client = await openTaskClient(url);
  onTestFinished(() => client.close());
  return client;
}

/** The answer to one request. */
export interface Answer {
  status: number;
  retryAfter: string | null;
  body: Record<string, unknown>;
  ms: number;
}

/** Rejects where there is no answer within 20 s. `post`: the page of a new task. */
export async function ask(
  { url }: ServiceProcess,
  path: string,
  post?: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const startMs = performance.now();
  const response = await fetch(url + path, {
    signal: AbortSignal.timeout(20_000),
    ...(post !== undefined && {
      method: "POST",
      body: JSON.stringify({ url: post }),
      headers: { "content-type": "application/json", ...headers },
    }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  const ms = performance.now() - startMs;
  return { status: response.status, retryAfter: response.headers.get("retry-after"), body, ms };
}

/** That the store is said to be away, and when to come again. */
export function expectAway({ status, retryAfter, body }: Answer): void {
  const { code, detail, retryable } = body;
  expect([status, code, retryable], String(detail)).toEqual([503, "unavailable", true]);
  expect(Number(retryAfter)).toBeGreaterThan(0);
}

/** That these tasks and no others are in the store, and that each ends with its film. */
export async function expectFilms(client: TaskClient, ids: Iterable<unknown>): Promise<void> {
  const all = [...ids].map(String);
  for (const id of all) {
    expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
    expect(hashes).toContain(hashOf(await (await client.file(id)).bytes()));
  }
  expect((await client.list()).map(({ id }) => id).toSorted()).toEqual(all.toSorted());
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
