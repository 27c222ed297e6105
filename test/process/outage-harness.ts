import { hash } from "node:crypto";
import { expect } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import type { Cluster, Role } from "./cluster.ts";
import type { TaskClient } from "./download-client.ts";
import { paddedFilm } from "./padded-film.ts";
import { collectLog, type LogLine, type ServiceProcess } from "./service.ts";
import { openTestCluster } from "./test-cluster.ts";

const long = paddedFilm(3_000_000);
const films = new Map([
  ["short.mp4", resource("video/mp4", readMedium("index-first.mp4"))],
  ["long.mp4", resource("video/mp4", long)],
]);
const hashes = [...films.values()].map(({ body }) => hash("sha256", body));

/** Opens a site that sends `long.mp4` in `seconds`, and `short.mp4` at the same speed. */
export async function openFilmSite(seconds: number): Promise<Site> {
  const site = await startTestSite(films, { bytesPerSecond: long.length / seconds });
  return site;
}

/** A process and the lines of its log. */
export interface LoggedProcess extends ServiceProcess {
  log: LogLine[];
}

export function openService(storeUrl: string): Cluster {
  return openTestCluster(storeUrl, { CONCURRENCY: "8", CONCURRENCY_PER_HOST: "8" });
}

export async function startLogged(cluster: Cluster, role: Role): Promise<LoggedProcess> {
  const service = await cluster.start(role);
  return { ...service, log: collectLog(service) };
}

interface ServiceResponse {
  status: number;
  retryAfter: string | null;
  body: Record<string, unknown>;
}

/** Sends a GET, or a POST of a task for `page`; rejects if there is no response within a minute. */
export async function send(
  { url }: ServiceProcess,
  path: string,
  page?: string,
  headers: Record<string, string> = {},
): Promise<ServiceResponse> {
  const response = await fetch(url + path, {
    signal: AbortSignal.timeout(60_000),
    ...(page !== undefined && {
      method: "POST",
      body: JSON.stringify({ url: page }),
      headers: { "content-type": "application/json", ...headers },
    }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, retryAfter: response.headers.get("retry-after"), body };
}

/** Expects a response that says that the store is unavailable and when to retry. */
export function expectUnavailable({ status, retryAfter, body }: ServiceResponse): void {
  const { code, detail, retryable } = body;
  expect([status, code, retryable], String(detail)).toEqual([503, "unavailable", true]);
  expect(Number(retryAfter)).toBeGreaterThan(0);
}

/** Expects that the store has these tasks and no others, and that each ends with a complete film. */
export async function expectFilms(client: TaskClient, ids: Iterable<unknown>): Promise<void> {
  const all = [...ids].map(String);
  for (const id of all) {
    expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
    expect(hashes).toContain(hash("sha256", await (await client.file(id)).bytes()));
  }
  expect((await client.list()).map(({ id }) => id).toSorted()).toEqual(all.toSorted());
}
