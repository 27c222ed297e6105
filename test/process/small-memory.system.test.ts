import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { type Resource, resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { startUpstream } from "../net/upstream.ts";
import { listsAndTexts, MiB, pages } from "../resolvers/page/hostile-pages.ts";
import { makeCgroup } from "./cgroup.ts";
import { openTaskClient } from "./download-client.ts";
import { addKey, bearer } from "./keys.ts";
import { type ServiceProcess, startCommand } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

const cgroup = makeCgroup(512 * MiB);
// The processes of a service that was killed end a moment later.
afterAll(() => vi.waitFor(() => cgroup?.remove(), { timeout: 60_000 }));

// The first start of all bundles its programs, which takes half of that memory.
beforeAll(() => {
  spawnSync(process.execPath, [fileURLToPath(new URL("../../src/system/bundle-programs.ts", import.meta.url))]);
});

const hostile = Object.entries({ ...pages, ...listsAndTexts, "a large page": ["text/html", "a".repeat(8 * MiB)] });
/** Each page twice. */
const requests = 2 * hostile.length;
const atATime = 60;

/** Without the right to make a cgroup there is nothing to limit the memory of all processes together. */
it.skipIf(cgroup === undefined)(
  "a service with 512 MiB for all its processes lives through over eighty hostile pages, and responds to others in less than half the time that these take",
  async () => {
    const site = await startUpstream((request, response) => {
      const name = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname.slice(1));
      const [, [type = "text/html", text = "<title>Otters</title>"] = []] =
        hostile.find(([each]) => each === name) ?? [];
      response.setHeader("content-type", type).end(text);
    });
    const { service, greedy, other } = await start();
    const timesMs = new Map<string, number[]>();
    const ask = async (who: string, path: string, headers: Record<string, string> = {}) => {
      const startMs = performance.now();
      const response = await fetch(`${service.url}${path}`, { headers });
      await response.text();
      timesMs.getOrInsertComputed(who, () => []).push(performance.now() - startMs);
      return response.status;
    };
    const infoOf = (path: string) => `/info?url=${encodeURIComponent(site.url(path).href)}`;
    const over = new AbortController();
    const attack = readAll((name, n) =>
      ask("greedy", infoOf(`/${encodeURIComponent(name)}?${n}`), bearer(greedy)),
    ).finally(() => over.abort());
    for (let n = 0; !over.signal.aborted; n++) {
      expect(await ask("health", "/health/live")).toBe(200);
      expect(await ask("list", "/tasks/", bearer(other))).toBe(200);
      expect(await ask("other", infoOf(`/otters?${n}`), bearer(other))).toBe(200);
    }
    expect(await attack).toEqual(Array(requests).fill(200));
    const timeOf = (who: string, share: number) => {
      const sorted = timesMs.get(who)!.toSorted((x, y) => x - y);
      return sorted[Math.floor(share * sorted.length)]!;
    };
    // Of twenty requests one may wait for a processor that others use as well.
    for (const who of ["health", "list", "other"])
      expect(timeOf(who, 0.95), who).toBeLessThan(timeOf("greedy", 0.5) / 2);
    expect(service.process.exitCode).toBeNull();
  },
);

/** A cue without end, and as many cues as there may be of short lines. */
const longSubtitles = [
  `WEBVTT\n\n00:00.000 --> 00:09.000\n${"a\n".repeat(14 * MiB)}`,
  `WEBVTT\n\n00:00.000 --> 00:09.000\n${"a".repeat(31 * MiB)}`,
  `WEBVTT\n\n${"00:00.000 --> 00:09.000\nж\n\n".repeat((10 * MiB) / 28)}`,
];

it.skipIf(cgroup === undefined)(
  "three downloads in 512 MiB, each with six subtitle files of 10 to 31 MiB, keep their films without these",
  async () => {
    const languages = ["en", "de", "fr", "es", "it", "pt"];
    const pageOf = (n: number) => {
      const tracks = languages.map(
        (language) => `<track kind="subtitles" srclang="${language}" src="/${n}.vtt?${language}">`,
      );
      return resource("text/html", `<title>Otters</title><video src="/film.mp4?${n}">${tracks.join("")}</video>`);
    };
    const film: [string, Resource] = ["film.mp4", resource("video/mp4", readMedium("index-first.mp4"))];
    const texts = longSubtitles.flatMap((text, n): [string, Resource][] => [
      [`${n}`, pageOf(n)],
      [`${n}.vtt`, resource("text/vtt", text)],
    ]);
    const site = await startTestSite(new Map([film, ...texts]));
    const settings = {
      DATA_DIR: makeFolder(),
      ALLOW_NETWORKS: "127.0.0.0/8",
      MIN_FREE_BYTES: "0",
      CONCURRENCY: "3",
      CONCURRENCY_PER_HOST: "3",
      MAX_ATTEMPTS: "1",
    };
    const service = await startTestService(settings, cgroup?.commandOf(startCommand));
    const client = await openTaskClient(service.url);
    onTestFinished(() => client.close());
    const posted = await Promise.all(longSubtitles.map((_, n) => client.post(site.url(`${n}`), { subtitles: true })));
    for (const { id } of posted) {
      const { state, error, file } = await client.ended(id);
      expect([state, error]).toEqual(["succeeded", null]);
      expect(file?.warnings?.map(({ code }) => code)).toEqual(languages.map(() => "subtitles_missing"));
    }
  },
);

it.skipIf(cgroup === undefined)("a process knows that its group has less memory than the machine", () => {
  const module = JSON.stringify(new URL("../../src/system/memory.ts", import.meta.url).href);
  const program = `const memory = await import(${module}); console.log(memory.memoryBytes, memory.isMemorySmall)`;
  const [node = "", ...args] = cgroup?.commandOf([process.execPath, "--input-type=module", "--eval", program]) ?? [];
  expect(spawnSync(node, args, { encoding: "utf8" }).stdout).toBe(`${512 * MiB} true\n`);
});

/** Reads all pages, 60 at a time. */
async function readAll(readPage: (name: string, n: number) => Promise<number>): Promise<number[]> {
  const statuses: number[] = [];
  let next = 0;
  const readNext = async () => {
    for (let n = next++; n < requests; n = next++) statuses.push(await readPage(hostile[n % hostile.length]![0], n));
  };
  await Promise.all(Array.from({ length: atATime }, readNext));
  return statuses;
}

async function start(): Promise<{ service: ServiceProcess; greedy: string; other: string }> {
  const folder = makeFolder();
  const env = { DATA_DIR: folder };
  const [greedy, other] = [await addKey(env, "greedy"), await addKey(env, "other")];
  const settings = {
    ...env,
    ALLOW_NETWORKS: "127.0.0.0/8",
    FETCHES_PER_HOST: `${2 * atATime}`,
    INFO_TIMEOUT_MS: "240000",
    PAGE_MAX_BYTES: `${9 * MiB}`,
  };
  const service = await startTestService(settings, cgroup?.commandOf(startCommand));
  return { service, greedy, other };
}
