import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { forkChild } from "./child.ts";
import { measureLatency } from "./download/latency.ts";
import { measureMemory } from "./download/memory.ts";
import { createMediaMaker } from "./download/media.ts";
import type { Bench } from "./download/part.ts";
import type { MediaServer } from "./download/server.ts";
import { measureProgressive, measureStream, measureThroughput } from "./download/speed.ts";
import { measureReader } from "./download/reader.ts";
import { measureService } from "./download/service-meanwhile.ts";
import { describeDisk } from "./http/disk.ts";
import { printTargets, type Target } from "./table.ts";

/**
 * Downloads by the real service compared with curl and ffmpeg, from a server in a child process:
 * `node bench/download.ts [--only NAME]… [--rounds 5] [--mb 1024] [--quick]`. `--mb`: size of the large
 * media, MiB. `--quick`: 1 round, 64 MiB. A missed target is only printed.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: Object.keys(parts) },
      rounds: { type: "string" },
      mb: { type: "string" },
      quick: { type: "boolean", default: false },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
  const largeBytes = Number(values.mb ?? (values.quick ? 64 : 1024)) * 1024 * 1024;
  const folder = mkdtempSync(join(tmpdir(), "unreel-bench-download-"));
  const media = join(folder, "media");
  mkdirSync(media);
  const server = forkChild<null, MediaServer>(new URL("download/server.ts", import.meta.url), {
    args: [media],
  });
  console.log(`Node ${process.version}, ${availableParallelism()} cores; ${describeDisk(folder)}`);
  try {
    const { base } = await server.ask(null);
    const lastSentMs = async () => (await server.ask(null)).lastSentMs;
    const maker = createMediaMaker(media);
    const bench: Bench = { base, lastSentMs, maker, folder, rounds, largeBytes, isQuick: values.quick };
    const targets: Target[] = [];
    for (const [name, part] of Object.entries(parts)) {
      if (values.only.includes(name)) targets.push(...(await part(bench)));
    }
    printTargets(targets);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

const parts: Readonly<Record<string, (bench: Bench) => Promise<Target[]>>> = {
  progressive: measureProgressive,
  latency: measureStream,
  hls: measureThroughput,
  reader: measureReader,
  memory: measureMemory,
  service: measureService,
  running: measureLatency,
};

await main();
