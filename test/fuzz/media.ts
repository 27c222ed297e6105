import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../src/remux/packed-audio/demuxer.ts";
import type { SampleSink } from "../../src/remux/samples.ts";
import { type Container, sniffContainer } from "../../src/remux/sniff.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { defineTarget } from "./target.ts";

const folder = new URL("../media/files/", import.meta.url);
const files = readdirSync(folder).filter((name) => /\.(m2t|m4s|mp4|m4a|aac|mp3)$/.test(name));
const media = files.map((name) => readFileSync(new URL(name, folder)));

/** Where a file is damaged (as a share of its length), how, and how many bytes. */
const change = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.oneof(fc.integer({ min: 1, max: 16 }), fc.integer({ min: 1, max: 100_000 })),
  kind: fc.constantFrom("overwrite", "remove", "repeat", "high", "zero"),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 16 }),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

const input = fc.record({
  medium: fc.nat(media.length - 1),
  changes: fc.array(change, { maxLength: 12 }),
  container: fc.constantFrom<(Container | null)[]>(null, null, null, "mpeg-ts", "mp4", "packed-audio"),
  chunkLength: fc.oneof(fc.constant(1 << 22), fc.integer({ min: 100, max: 50_000 })),
});

/** The demuxers on damaged real media: valid samples, or a ServiceError. */
export const mediaTarget = defineTarget({
  name: "media",
  input,
  prepare({ medium, changes, container, chunkLength }) {
    const bytes = changes.reduce(damage, media[medium] ?? Buffer.alloc(0));
    return { bytes, container: container ?? sniffContainer(bytes), chunkLength };
  },
  run({ bytes, container, chunkLength }) {
    const sink = createChecker();
    const parts = { sink, timelines: new Timelines(), kinds: ["video", "audio"] } as const;
    const demuxer = demuxerOf(container, parts);
    // Boxes must be complete in one call.
    const length = container === "mp4" ? bytes.length : chunkLength;
    for (let at = 0; at < bytes.length; at += length) {
      demuxer.read(bytes.subarray(at, at + length), { timeline: 0, offsetS: null });
    }
    demuxer.flush();
  },
  check(outcome) {
    if (!("error" in outcome)) return;
    const { error } = outcome;
    if (error instanceof ServiceError && refusals.has(error.code)) return;
    throw error;
  },
});

const refusals: ReadonlySet<string> = new Set(["upstream_invalid", "format_unavailable", "drm_protected"]);

function damage(bytes: Buffer, { at, length, kind, bytes: foreign }: Change): Buffer {
  const start = Math.floor(at * bytes.length);
  const [before, hit, after] = [
    bytes.subarray(0, start),
    bytes.subarray(start, start + length),
    bytes.subarray(start + length),
  ];
  if (kind === "remove") return Buffer.concat([before, after]);
  if (kind === "repeat") return Buffer.concat([before, hit, hit, after]);
  const filling = { overwrite: foreign, high: [0xff], zero: [0] }[kind];
  return Buffer.concat([before, Buffer.alloc(hit.length, Uint8Array.from(filling)), after]);
}

function demuxerOf(container: Container | null, parts: Parameters<typeof createMpegTsDemuxer>[0]) {
  if (container === "mp4") return createMp4Demuxer(parts);
  if (container === "packed-audio") return createPackedAudioDemuxer(parts);
  return createMpegTsDemuxer(parts);
}

/** Creates a sink that throws on times that no file can contain; empty samples are allowed. */
function createChecker(): SampleSink {
  let tracks = 0;
  return {
    setFormat: (_format, track) => track ?? tracks++,
    write(track, { dts, pts, duration }) {
      const isValid = [dts, pts, duration].every(Number.isSafeInteger) && duration >= 0;
      if (track < tracks && isValid) return;
      throw new Error(`an invalid sample: ${JSON.stringify({ track, dts, pts, duration })}`);
    },
  };
}
