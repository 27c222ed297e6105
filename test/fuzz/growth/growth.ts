import type { Grow } from "./grow.ts";
import type { PageReader } from "./reader.ts";

/** How long a construct is at first, UTF-16 code units, and how often it is repeated. */
const length = 20_000;
const factors = [1, 10, 100];

/** What the process of a `PageReader` needs at rest, and the most that a page may add. */
export const heapMiB = 24 + 64;
/** What a reader's process has by default. */
export const readerHeapMiB = 128;
/** Generous: most constructs take a twentieth. */
const maxMs = (bytes: number) => 300 + bytes / 2_000;
/** How much more than in proportion the time may grow: ten times as long, quadratic time is ten times too much. */
const maxExcess = 4;
/** Shorter times are not told from nothing: CPU time is counted in ticks. */
const minMs = 10;
/** A slow page is read again: others may have used the processor's caches, or garbage may have been collected. */
const attempts = 3;

const pageUrl = "https://video.example.com/watch/1";

interface Measured {
  bytes: number;
  cpuMs: number;
}

/**
 * Reads pages of this construct, each ten times as long as the one before; returns what took more than linear time or too much
 * memory, and null if nothing did. `scale`: how many times as long all pages are.
 */
export async function findExcess(reader: PageReader, grow: Grow, scale = 1): Promise<string | null> {
  const measured: Measured[] = [];
  for (const factor of factors) {
    const page = grow(length * factor * scale);
    const { html, url, kind = "page" } = typeof page === "string" ? { html: page, url: pageUrl } : page;
    const bytes = Buffer.from(html);
    const cost = { bytes: bytes.length, cpuMs: Infinity };
    let excess: string | null = null;
    for (let attempt = 0; attempt === 0 || (attempt < attempts && excess !== null); attempt++) {
      cost.cpuMs = Math.min(cost.cpuMs, await reader.read({ bytes, url, kind }));
      excess = excessOf(cost, measured.at(-1));
    }
    if (excess !== null) return excess;
    measured.push(cost);
  }
  return null;
}

function excessOf({ bytes, cpuMs }: Measured, shorter: Measured | undefined): string | null {
  const what = `${bytes} bytes took ${cpuMs.toFixed(0)} ms`;
  if (cpuMs > maxMs(bytes)) return what;
  if (shorter === undefined) return null;
  const inProportion = (Math.max(minMs, shorter.cpuMs) * bytes) / shorter.bytes;
  return cpuMs > maxExcess * inProportion ? `${what}, ${shorter.bytes} bytes ${shorter.cpuMs.toFixed(0)} ms` : null;
}
