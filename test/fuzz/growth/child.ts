import { ServiceError } from "../../../src/model/errors.ts";
import { createTimeSlices, type Steps } from "../../../src/parsers/steps.ts";
import { tryParseUrl } from "../../../src/parsers/url.ts";
import { createDraft } from "../../../src/resolvers/page/draft.ts";
import { PageText } from "../../../src/resolvers/page/markup/charset.ts";
import { readMarkup } from "../../../src/resolvers/page/markup/read-markup.ts";
import { readBody } from "../../../src/resolvers/page/reader/read-body.ts";
import type { Cost, PageBytes } from "./reader.ts";

const never = new AbortController().signal;
const now = new Date("2024-05-06T07:08:09.000Z");
const chunkBytes = 16 * 1024;

/** Reads a response of another kind as a reader's process does. What it refuses has its cost, too. */
async function readOther({ bytes, url, kind }: PageBytes): Promise<Cost> {
  const about = { url: new URL(url), contentType: null, now, isPlayer: false, start: 0 };
  const before = cpuMs();
  try {
    await readBody({ kind, ...about }, [bytes], createTimeSlices(Infinity), never);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
  return { cpuMs: cpuMs() - before, stepMs: 0 };
}

/** Reads a page as the resolver does, and returns what that cost. */
async function readPage({ bytes, url }: PageBytes): Promise<Cost> {
  let stepMs = 0;
  const slices = {
    async run<T>(steps: Steps<T>): Promise<T> {
      for (;;) {
        const before = cpuMs();
        const { done, value } = steps.next();
        stepMs = Math.max(stepMs, cpuMs() - before);
        if (done === true) return value;
      }
    },
  };
  const before = cpuMs();
  const markup = await readMarkup(new PageText(chunksOf(bytes), "text/html"), slices, never);
  const pageUrl = new URL(url);
  const base = tryParseUrl(markup.base, pageUrl) ?? pageUrl;
  await slices.run(createDraft(markup, pageUrl, { base, now, isPlayer: false, frames: [] }));
  return { cpuMs: cpuMs() - before, stepMs };
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

process.on("message", (page: PageBytes) => {
  void (page.kind === "page" ? readPage : readOther)(page).then((cost) => process.send?.(cost));
});
