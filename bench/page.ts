import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Browser, CDPSession, Page } from "playwright-core";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { listedTask } from "../test/http/listed-task.ts";
import { resource } from "../test/media/resources.ts";
import { startSite } from "../test/media/site.ts";
import { openTaskClient } from "../test/process/download-client.ts";
import { paddedFilm } from "../test/process/padded-film.ts";
import { startService } from "../test/process/service.ts";
import { isChromiumMissing, launchChromium } from "../test/web/chromium.ts";
import { format, median, printTable, printTargets } from "./table.ts";

/**
 * What the page for people costs, in Chromium with the real program: bytes and requests of the first visit; with 1,000
 * stored tasks and 3 running downloads, the time from the script's run to the first list, and the processor time of the
 * page while it shows progress: `node bench/page.ts [--rounds 5]`.
 */
async function main(rounds: number): Promise<void> {
  if (isChromiumMissing) {
    console.log("skipped: there is no Chromium (CHROMIUM)");
    return;
  }
  await using opened = new AsyncDisposableStack();
  const browser = await launchChromium();
  opened.defer(() => browser.close());
  const visit = await measureFirstVisit(browser);
  const full = await measureFullList(browser, rounds);
  printTable(
    "the page for people",
    ["", "requests", "kB on the wire", "first list ms", "script ms per 6 s", "all ms per 6 s"],
    [
      ["first visit, no task", `${visit.requests}`, format(visit.bytes / 1000), "", "", ""],
      [
        "1,000 tasks, 3 running",
        `${full.visit.requests}`,
        format(full.visit.bytes / 1000),
        format(full.firstListMs),
        format(full.scriptMs),
        format(full.taskMs),
      ],
    ],
  );
  printTargets([
    { name: "first visit", value: visit.bytes / 1000, unit: "kB", atMost: 30 },
    { name: "first visit", value: visit.requests, unit: "requests", atMost: 15 },
    { name: "first list", value: full.firstListMs, unit: "ms", atMost: 300 },
    { name: "script, 6 s of progress", value: full.scriptMs, unit: "ms", atMost: 100 },
    { name: "list of 50, gzip", value: full.listBytes / 1000, unit: "kB", atMost: 10 },
  ]);
}

interface Visit {
  requests: number;
  bytes: number;
}

async function measureFirstVisit(browser: Browser): Promise<Visit> {
  await using opened = new AsyncDisposableStack();
  const service = await openService(opened, await openFolder(opened));
  const { page, visit } = await openPage(browser, opened);
  await page.goto(service);
  await page.getByText("Nothing here yet.").waitFor();
  await page.waitForLoadState("load");
  return visit();
}

async function measureFullList(browser: Browser, rounds: number) {
  await using opened = new AsyncDisposableStack();
  const folder = await openFolder(opened);
  await storeTasks(join(folder, "tasks.db"));
  const film = resource("video/mp4", paddedFilm(400_000_000));
  const site = await startSite(new Map([["film.mp4", film]]), { bytesPerSecond: 1_000_000 });
  opened.defer(() => site.close());
  const service = await openService(opened, folder);
  const client = await openTaskClient(service);
  opened.defer(() => client.close());
  for (let n = 0; n < 3; n++) {
    const { id } = await client.post(`${site.url("film.mp4")}?${n}`);
    await client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
  }
  const samples = [];
  for (let round = 0; round < rounds; round++) {
    await using tab = new AsyncDisposableStack();
    const { page, session, visit } = await openPage(browser, tab);
    await page.addInitScript({ content: observer });
    await page.goto(service);
    await page.getByRole("article").nth(49).waitFor();
    const firstListMs = await page.evaluate<number>("listedMs - renderedMs");
    // What the first list leads to is over by then: thumbnails, the loaded parts.
    await page.waitForLoadState("load");
    await wait(1_000);
    const before = await readMetrics(session);
    await wait(6_000);
    const after = await readMetrics(session);
    const spent = (name: string) => 1000 * ((after.get(name) ?? 0) - (before.get(name) ?? 0));
    samples.push({
      visit: visit(),
      firstListMs,
      scriptMs: spent("ScriptDuration"),
      taskMs: spent("TaskDuration"),
    });
  }
  return {
    visit: samples[0]?.visit ?? { requests: Number.NaN, bytes: Number.NaN },
    firstListMs: median(samples.map(({ firstListMs }) => firstListMs)),
    scriptMs: median(samples.map(({ scriptMs }) => scriptMs)),
    taskMs: median(samples.map(({ taskMs }) => taskMs)),
    listBytes: await transferSize(`${service}/tasks/?limit=50`),
  };
}

/** Notes when the script has shown the page, and when the first task is there. */
const observer = `
  new MutationObserver(() => {
    if (document.querySelector(".page")) globalThis.renderedMs ??= performance.now();
    if (document.querySelector("article")) globalThis.listedMs ??= performance.now();
  }).observe(document, { childList: true, subtree: true });
`;

async function openPage(browser: Browser, opened: AsyncDisposableStack) {
  const context = await browser.newContext();
  opened.defer(() => context.close());
  const page: Page = await context.newPage();
  const session: CDPSession = await context.newCDPSession(page);
  const received = new Map<string, number>();
  session.on("Network.responseReceived", ({ requestId, response }) => {
    received.set(requestId, response.encodedDataLength);
  });
  // Bytes of header and body together.
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    received.set(requestId, encodedDataLength);
  });
  await session.send("Network.enable");
  await session.send("Performance.enable");
  const visit = (): Visit => ({
    requests: received.size,
    bytes: [...received.values()].reduce((sum, bytes) => sum + bytes, 0),
  });
  return { page, session, visit };
}

async function readMetrics(session: CDPSession): Promise<Map<string, number>> {
  const { metrics } = await session.send("Performance.getMetrics");
  return new Map(metrics.map(({ name, value }) => [name, value]));
}

async function openFolder(opened: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "unreel-bench-page-"));
  opened.defer(() => rm(folder, { recursive: true }));
  return folder;
}

async function openService(opened: AsyncDisposableStack, folder: string): Promise<string> {
  const service = await startService({
    DATA_DIR: folder,
    ALLOW_NETWORKS: "127.0.0.0/8",
    CONCURRENCY_PER_HOST: "3",
  });
  opened.defer(async () => void (await service.end("SIGTERM")));
  return service.url;
}

async function storeTasks(path: string): Promise<void> {
  const store = openSqliteStore({ path });
  for (let n = 0; n < 1_000; n++) await store.create(listedTask(n));
  await store.close();
}

/** Returns the size of the compressed body. */
function transferSize(url: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  get(url, { headers: { "accept-encoding": "gzip" } }, (response) => {
    let bytes = 0;
    response.on("data", (chunk: Buffer) => void (bytes += chunk.length));
    response.on("end", () => resolve(bytes)).on("error", reject);
  }).on("error", reject);
  return promise;
}

const at = process.argv.indexOf("--rounds");
await main(at === -1 ? 5 : Number(process.argv[at + 1]));
