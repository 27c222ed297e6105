import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Child, forkChild } from "./child.ts";
import { readPages } from "./peers/pages.ts";
import { type ToolName, tools } from "./peers/tools.ts";
import type { Reading } from "./peers/worker.ts";
import { format, median, printTable, printTargets } from "./table.ts";

/**
 * CPU time that this service and its peers take to read the saved pages of CORPUS_DIR:
 * `node bench/peers.ts [--passes 3]`. Each tool has its own process; the tools take turns page by page.
 * The first pass is the warm-up and is reported separately.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { passes: { type: "string", default: "3" } } });
  const directory = process.env["CORPUS_DIR"] ?? fileURLToPath(new URL("../../shared/corpus", import.meta.url));
  if (!existsSync(directory)) {
    console.log(`skipped: there are no saved pages at ${directory}; CORPUS_DIR names their directory`);
    return;
  }
  const pages = readPages(directory);
  const megabytes = pages.reduce((sum, { bytes }) => sum + bytes.length, 0) / 1e6;
  console.log(`Node ${process.version}; ${pages.length} pages, ${megabytes.toFixed(1)} MB`);
  report(await readAll(directory, pages.length, 1 + Number(values.passes)), pages.length);
}

/** What one tool took for each page of one pass. */
type Pass = Reading[];

async function readAll(directory: string, pageCount: number, passCount: number): Promise<Map<ToolName, Pass[]>> {
  const server = forkChild<null, string>(new URL("peers/page-server.ts", import.meta.url), {
    args: [directory],
  });
  const workers = new Map<ToolName, Child<number, Reading>>();
  try {
    const base = await server.ask(null);
    for (const name of Object.keys(tools) as ToolName[]) {
      const args = [name, directory, base];
      workers.set(name, forkChild(new URL("peers/worker.ts", import.meta.url), { args }));
    }
    const passes = new Map([...workers.keys()].map((name) => [name, [] as Pass[]]));
    for (let pass = 0; pass < passCount; pass++) {
      for (const list of passes.values()) list.push([]);
      for (let page = 0; page < pageCount; page++) {
        for (const [name, worker] of workers) {
          passes
            .get(name)
            ?.at(-1)
            ?.push(await worker.ask(page));
        }
      }
    }
    return passes;
  } finally {
    await Promise.all([server, ...workers.values()].map((child) => child.stop()));
  }
}

function report(passes: ReadonlyMap<ToolName, Pass[]>, pageCount: number): void {
  const of = (name: ToolName) => passes.get(name) ?? [];
  const rate = (pass: Pass, pick = ({ cpuMs }: Reading) => cpuMs) =>
    (1000 * pageCount) / pass.reduce((sum, reading) => sum + pick(reading), 0);
  const warm = (name: ToolName) => of(name).slice(1);
  const times = (name: ToolName, base: ToolName) => {
    const rates = warm(base).map((pass) => rate(pass));
    return median(warm(name).map((pass, i) => rate(pass) / (rates[i] ?? Number.NaN)));
  };
  const head = ["", "pages/s", "unreel ×", "ms a page", "pages/s (wall)", "pages/s (first pass)", "threw"];
  const rows = [...passes.keys()].map((name) => [
    name,
    format(median(warm(name).map((pass) => rate(pass)))),
    format(times(name.endsWith("loopback") ? "unreel, loopback" : "unreel", name)),
    format(median(warm(name).flatMap((pass) => pass.map(({ cpuMs }) => cpuMs)))),
    format(median(warm(name).map((pass) => rate(pass, ({ wallMs }) => wallMs)))),
    format(
      median(
        of(name)
          .slice(0, 1)
          .map((pass) => rate(pass)),
      ),
    ),
    `${
      of(name)
        .at(-1)
        ?.filter(({ threw }) => threw).length
    }`,
  ]);
  printTable("reading saved pages, CPU time of the process, one page at a time", head, rows);
  printTargets([
    {
      name: "unreel",
      value: median(warm("unreel").map((pass) => rate(pass))),
      unit: "pages/s",
      atLeast: 400,
    },
    {
      name: "unreel : unfurl.js (loopback)",
      value: times("unreel", "unfurl.js, loopback"),
      unit: "×",
      atLeast: 1.8,
    },
    {
      name: "unreel : open-graph-scraper",
      value: times("unreel", "open-graph-scraper"),
      unit: "×",
      atLeast: 20,
    },
  ]);
}

await main();
