import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Task } from "../src/model/task.ts";
import { startService } from "../test/process/service.ts";
import { createVariant, installed } from "../test/resolvers/ytdlp/installed.ts";
import { openBenchPostgres } from "./postgres.ts";
import { format, median, printTable, printTargets, type Target } from "./table.ts";

/**
 * What a long list costs, in SQLite and in Postgres: `node bench/entries.ts [--entries 10000] [--rounds 3]`. A feed, or a playlist of
 * yt-dlp if it is installed, is posted with all its entries; the first media never end. Once all entries are tasks, the collection is
 * canceled, retried and deleted.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { entries: { type: "string", default: "10000" }, rounds: { type: "string", default: "3" } },
  });
  const [entries, rounds] = [Number(values.entries), Number(values.rounds)];
  await using site = await openFeed(entries);
  await using postgres = await openBenchPostgres();
  using ytDlp = installed && createVariant({ extractors: { listed: extractor } });
  const lists = ytDlp === undefined ? ["feed"] : ["feed", "yt-dlp"];
  if (ytDlp === undefined) console.log("no yt-dlp (YTDLP): its list is left out");
  const listUrl = (count: number) => site.url.replace("feed", `list-${count}`);
  // Python compiles what has just been installed.
  if (ytDlp !== undefined) await measure(listUrl(1), 1, { YTDLP: ytDlp.path });
  const found: Record<string, Measured[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const list of lists) {
      const url = list === "feed" ? site.url : listUrl(entries);
      const env = list === "feed" ? {} : { YTDLP: ytDlp?.path ?? "" };
      (found[`${list}, SQLite`] ??= []).push(await measure(url, entries, env));
      (found[`${list}, Postgres`] ??= []).push(
        await measure(url, entries, { ...env, STORE_URL: await postgres.open() }),
      );
    }
  }
  const columns = Object.keys(bounds) as (keyof Measured)[];
  const medians = Object.entries(found).map(([store, all]) => ({
    store,
    of: (name: keyof Measured) => median(all.map((each) => each[name])),
  }));
  const rows = medians.map(({ store, of }) => [store, ...columns.map((name) => format(of(name)))]);
  printTable(`a list of ${entries} entries, medians of ${rounds}`, ["", ...columns], rows);
  const targets = medians.flatMap(({ store, of }) =>
    columns.map((name): Target[] => {
      const atMost = bounds[name];
      return atMost === undefined ? [] : [{ name: `${store}: ${name}`, value: of(name), unit: "", atMost }];
    }),
  );
  printTargets(targets.flat());
}

/** A playlist whose entries yt-dlp makes as they are read. */
const extractor = `
from .common import InfoExtractor
__all__ = ['ListedIE']
class ListedIE(InfoExtractor):
    _VALID_URL = r'(?P<base>http://127\\.0\\.0\\.1:\\d+)/list-(?P<id>\\d+)$'
    def _real_extract(self, url):
        base, count = self._match_valid_url(url).group('base', 'id')
        entries = (self.url_result(f'{base}/{n + 1}.mp4', video_title=f'Film {n + 1}') for n in range(int(count)))
        return self.playlist_result(entries, count, 'Films')
`;

interface Measured {
  "POST s": number;
  "first runs s": number;
  "all made s": number;
  "cancel s": number;
  "retry s": number;
  "delete s": number;
  "peak MiB": number;
}

/** Of each column; undefined: it has none. */
const bounds: Record<keyof Measured, number | undefined> = {
  "POST s": 1,
  "first runs s": 3,
  "all made s": undefined,
  "cancel s": 1,
  "retry s": 1,
  "delete s": 1,
  "peak MiB": undefined,
};

async function measure(feed: string, entries: number, env: Record<string, string>): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), "unreel-entries-"));
  const service = await startService({ DATA_DIR: folder, ALLOW_NETWORKS: "127.0.0.0/8", MAX_QUEUED: "20000", ...env });
  const { url } = service;
  try {
    const startMs = performance.now();
    const since = (ms: number) => (performance.now() - ms) / 1000;
    const json = { url: feed, options: { entries: "all" } };
    const { id } = await call<Task>(`${url}/tasks/`, "POST", json);
    const postS = since(startMs);
    const read = () => call<Task>(`${url}/tasks/${id}`);
    const until = async (holds: (counts: NonNullable<Task["counts"]>) => boolean) => {
      for (;;) {
        const { counts, state, error } = await read();
        if (counts !== undefined && holds(counts)) return since(startMs);
        if (state !== "running" && state !== "queued") throw new Error(`the collection is ${state}: ${error?.message}`);
        await wait(10);
      }
    };
    const firstS = await until(({ running }) => running > 0);
    const allS = await until((counts) => Object.values(counts).reduce((sum, each) => sum + each, 0) === entries);
    const timed = async (method: string, path: string) => {
      const ms = performance.now();
      await call(`${url}/tasks/${id}${path}`, method);
      return since(ms);
    };
    const cancelS = await timed("POST", "/cancel");
    const retryS = await timed("POST", "/retry");
    const deleteS = await timed("DELETE", "");
    return {
      "POST s": postS,
      "first runs s": firstS,
      "all made s": allS,
      "cancel s": cancelS,
      "retry s": retryS,
      "delete s": deleteS,
      "peak MiB": await peakMiB(service.process.pid),
    };
  } finally {
    await service.end("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

async function call<T>(url: string, method = "GET", json?: unknown): Promise<T> {
  const body =
    json === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  const response = await fetch(url, { method, ...body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text.slice(0, 500)}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Serves a feed whose media never end. */
async function openFeed(entries: number) {
  const server = createServer((request, response) => {
    if (request.url !== "/feed") {
      response.setHeader("content-type", "video/mp4").flushHeaders();
      return;
    }
    const { port } = server.address() as AddressInfo;
    const items = Array.from(
      { length: entries },
      (_, n) =>
        `<item><title>Film ${n + 1}</title><guid>${n + 1}</guid><enclosure url="http://127.0.0.1:${port}/${n + 1}.mp4" type="video/mp4" length="1000000"/></item>`,
    );
    const feed = `<?xml version="1.0"?><rss version="2.0"><channel><title>Films</title>${items.join("")}</channel></rss>`;
    response.setHeader("content-type", "application/rss+xml").end(feed);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/feed`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function peakMiB(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

await main();
