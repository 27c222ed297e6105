import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import type { Task } from "../../src/model/task.ts";
import { expect, it, onTestFinished } from "vitest";
import { film, openSite } from "./film-site.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

async function startLimited() {
  const dataDir = makeFolder();
  const service = await startTestService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.0/8", MIN_FREE_BYTES: "0" });
  const { pid } = service.process;
  const prlimit = (...args: string[]) => execFileSync("prlimit", [`--pid=${pid}`, ...args], { encoding: "utf8" });
  const before = prlimit("--nofile", "--noheadings", "--output=SOFT").trim();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return {
    /** Sends a request, all on one connection; with a body, as POST. */
    async ask(path: string, body?: object) {
      const headers = { "content-type": "application/json" };
      const asked = request(`${service.url}${path}`, { agent, headers, method: body ? "POST" : "GET" });
      const [response] = (await once(asked.end(body && JSON.stringify(body)), "response")) as [IncomingMessage];
      return { status: response.statusCode, body: (await json(response)) as Task };
    },
    /** Lets the service open so many more files, beside some in place of those that it closes. */
    openNoMoreThan(spare: number) {
      const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
      const free = Array.from({ length: taken.size + spare + 1 }, (_, fd) => fd).filter((fd) => !taken.has(fd));
      prlimit(`--nofile=${free[spare]}:`);
    },
    openAgain: () => void prlimit(`--nofile=${before}:`),
  };
}

it("a run whose process cannot be started for want of files is tried again", async () => {
  const site = await openSite();
  const { ask, openNoMoreThan, openAgain } = await startLimited();
  // From then on there is a connection to the site; a process needs more than two files.
  await ask(`/info?url=${encodeURIComponent(site.url("film.mp4"))}`);
  openNoMoreThan(2);
  const { id } = (await ask("/tasks/", { url: site.url("film.mp4") })).body;
  const task = async () => (await ask(`/tasks/${id}`)).body;
  await expect.poll(async () => (await task()).error).not.toBeNull();
  expect(await task()).toMatchObject({
    error: { code: "unavailable", message: expect.stringMatching(/no process .* can be started: .*EMFILE/) },
  });
  openAgain();
  await expect.poll(task).toMatchObject({ state: "succeeded", file: { size: film.length } });
});

it("a page that cannot be fetched for want of files is not said to be unreachable", async () => {
  const site = await openSite();
  const { ask, openNoMoreThan, openAgain } = await startLimited();
  await ask("/health/live");
  openNoMoreThan(0);
  const path = `/info?url=${encodeURIComponent(site.url("film.mp4"))}`;
  expect(await ask(path)).toMatchObject({ status: 503, body: { code: "unavailable", retryable: true } });
  openAgain();
  expect(await ask(path)).toMatchObject({ status: 200 });
});
