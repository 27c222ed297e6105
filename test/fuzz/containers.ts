import { mkdirSync, rmSync } from "node:fs";
import * as fc from "fast-check";
import type { Download, Engine } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { type EngineHarness, openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { defineTarget, type FuzzTarget } from "./target.ts";

/** A number in a file that becomes another one. */
const change = fc.record({
  /** Which of the file's tables it is near; `null`: it is at `at`. */
  place: fc.option(fc.nat(10_000)),
  at: fc.nat(1_000_000),
  offset: fc.nat(40),
  value: fc.oneof(
    fc.constantFrom(0, 1, 2, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 60_000_000),
    fc.nat(0xffff_ffff),
  ),
  width: fc.constantFrom(1, 2, 4),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
const input = fc.array(change, { minLength: 1, maxLength: 8 });

const failures: ReadonlySet<string> = new Set([
  "upstream_invalid",
  "upstream_unreachable",
  "format_unavailable",
  "drm_protected",
  "too_large",
]);

/** As long as a hostile file may hold its process. */
const longestMs = 30_000;

/** Downloads of damaged files through the real worker process: a file, or a typed error within 30 s. */
export const containerTargets: readonly FuzzTarget[] = [
  targetOf("mp4-tables", "index-first.mp4", /stsd|stts|ctts|stsc|stsz|stco|mdhd|elst|trun/g),
  targetOf("mkv-elements", "h264-aac.mkv", /\x1aE\xdf\xa3|\x18S\x80g|\x16T\xaek|\x1fC\xb6u|\x1cS\xbbk/g),
  targetOf("webm-elements", "vp9-opus.webm", /\x1aE\xdf\xa3|\x18S\x80g|\x16T\xaek|\x1fC\xb6u|\x1cS\xbbk/g),
  targetOf("ogg-pages", "vorbis.ogg", /OggS|vorbis/g),
  targetOf("mp3-headers", "tone.mp3", /ID3|Xing|Info|LAME|\xff\xfb/g),
];

function targetOf(name: string, medium: string, pattern: RegExp): FuzzTarget {
  const bytes = readMedium(medium);
  const places = [...bytes.toString("latin1").matchAll(pattern)].map(({ index }) => index);
  let harness: Promise<EngineHarness> | undefined;
  return defineTarget({
    name,
    input,
    prepare: async (changes) => {
      const { site, job, download } = await (harness ??= openEntry(openEngine, new Map(), medium));
      const damaged = Buffer.from(bytes);
      for (const one of changes) damage(damaged, one, places);
      site.resources.set(medium, resource("application/octet-stream", damaged));
      return { folder: job.folder, download };
    },
    async run({ folder, download }): Promise<Download> {
      // A later run in one folder waits for readers of the stream of an earlier one.
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      return download({}, AbortSignal.timeout(longestMs));
    },
    check(outcome) {
      if (!("error" in outcome)) return;
      const { error } = outcome;
      if (!(error instanceof ServiceError) || !failures.has(error.code)) throw error;
    },
    async close() {
      await (await harness)?.[Symbol.asyncDispose]();
      harness = undefined;
      await engine?.close();
      engine = undefined;
    },
    shortRuns: 8,
  });
}

let engine: Engine | undefined;

/** One for all files, with less time than in the service, for more runs. */
function openEngine(): Engine {
  return (engine ??= createNativeEngine({ allowNetworks: ["127.0.0.1/32"], limits: { workMs: 1_000 } }));
}

function damage(bytes: Buffer, { place, at, offset, value, width }: Change, places: readonly number[]): void {
  const start = place === null ? at : (places[place % places.length] ?? 0) + offset;
  const last = bytes.length - width;
  bytes.writeUIntBE(value % 2 ** (8 * width), start % (last + 1), width);
}
