import { ServiceError } from "../../../src/model/errors.ts";
import { readBody } from "../../../src/resolvers/page/reader/read-body.ts";
import type { PageBytes } from "./reader.ts";

const now = new Date("2024-05-06T07:08:09.000Z");

/** Reads a response as a reader's process does, and returns the CPU time that takes. What it refuses has its cost, too. */
function read({ bytes, url, kind }: PageBytes): number {
  const about = { url: new URL(url), contentType: null, now, isPlayer: false, start: 0 };
  const before = cpuMs();
  try {
    readBody({ kind, ...about }, bytes);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
  return cpuMs() - before;
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

process.on("message", (page: PageBytes) => process.send?.(read(page)));
