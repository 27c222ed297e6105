import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import * as fc from "fast-check";
import type { Download } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { type EngineHarness, openEntry } from "../contracts/engine/harness.ts";
import { mediaPlaylist } from "../media/hls.ts";
import { type Decoded, decode, hasFfmpeg } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, resource, type Resources } from "../media/resources.ts";
import { defineTarget } from "./target.ts";

/** A second of 25 pictures each; the same codecs, so that all may be in one file. */
const renditions = ["high.m2t", "low.m2t", "muxed.m4s"].map((name) => ({
  name,
  ...readRendition(name),
}));
const packetBytes = 188;

/** A segment of a playlist, in any order, and what is done to it. */
const entry = fc.record({
  rendition: fc.constantFrom(0, 0, 0, 1, 2),
  piece: fc.nat(5),
  isJoined: fc.boolean(),
  /**
   * Packets that are left out of a transport stream: where, and how many. Their counters show it unless a track
   * has no packet after them in the segment, or 16 are missing.
   */
  loss: fc.option(fc.record({ at: fc.nat(30), count: fc.integer({ min: 1, max: 15 }) }), {
    freq: 8,
  }),
});
type Entry = typeof entry extends fc.Arbitrary<infer T> ? T : never;

/** Mostly one rendition from its first segment on. */
const input = fc.oneof(
  fc.array(entry, { minLength: 1, maxLength: 6 }),
  fc
    .array(entry, { minLength: 2, maxLength: 6 })
    .map((entries) => entries.map((one, piece) => ({ ...one, piece, rendition: entries[0]!.rendition }))),
);

interface Made {
  file: Download;
  pictures: number;
  decoded: Decoded;
}

const refusals: ReadonlySet<string> = new Set(["upstream_invalid", "format_unavailable", "upstream_unreachable"]);

/**
 * Playlists of real segments in any order, with losses, through the engine to a file: ffmpeg reads each track of
 * it, and decodes all pictures of the source without a fault unless the file has warnings.
 */
export const playlistTarget = createTarget();

function createTarget() {
  const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
  let opened: Promise<EngineHarness> | undefined;
  return defineTarget({
    name: "playlists",
    input,
    async prepare(entries: Entry[]) {
      const harness = await (opened ??= openEntry(() => engine, new Map(), "index.m3u8"));
      rmSync(harness.job.folder, { recursive: true, force: true });
      mkdirSync(harness.job.folder);
      harness.site.resources = lay(entries);
      return { harness, pictures: 25 * entries.length };
    },
    async run({ harness, pictures }): Promise<Made | null> {
      const file = await harness.download({}, AbortSignal.timeout(30_000));
      if (!hasFfmpeg) return null;
      return { file, pictures, decoded: await decode(file.path) };
    },
    check(outcome) {
      if ("error" in outcome) {
        const { error } = outcome;
        if (error instanceof ServiceError && refusals.has(error.code)) return;
        throw error;
      }
      if (outcome.value !== null) checkMade(outcome.value);
    },
    // ffmpeg is waited for.
    stallFactor: 10,
    shortRuns: 12,
    async close() {
      await engine.close();
      await (await opened)?.[Symbol.asyncDispose]();
      opened = undefined;
    },
  });
}

function lay(entries: readonly Entry[]): Resources {
  const resources: Resources = new Map();
  const lines: string[] = [];
  let before: Entry | undefined;
  for (const [i, one] of entries.entries()) {
    const { name, init, pieces } = renditions[one.rendition]!;
    const { data, durationS } = pieces[one.piece]!;
    const follows = before?.rendition === one.rendition && before.piece + 1 === one.piece;
    if (before !== undefined && !follows && !one.isJoined) lines.push("#EXT-X-DISCONTINUITY");
    if (init !== null) {
      resources.set(`${name}.init`, resource("video/mp4", init));
      lines.push(`#EXT-X-MAP:URI="${name}.init"`);
    }
    resources.set(`${i}.seg`, resource("video/mp2t", init === null ? withLoss(data, one) : data));
    lines.push(`#EXTINF:${durationS.toFixed(6)},`, `${i}.seg`);
    before = one;
  }
  return resources.set("index.m3u8", hls(mediaPlaylist(lines)));
}

function withLoss(data: Buffer, { loss }: Entry): Buffer {
  if (loss === null) return data;
  const start = loss.at * packetBytes;
  const rest = data.subarray(start + loss.count * packetBytes);
  return Buffer.concat([data.subarray(0, start), rest]);
}

function checkMade({ file, pictures, decoded }: Made): void {
  const codes = file.warnings.map(({ code }) => code).join(", ");
  assert.ok(decoded.streams.length > 0, "ffmpeg finds no track");
  for (const { kind, frames } of decoded.streams) assert.ok(frames > 0, `the ${kind} has no sample`);
  if (file.warnings.length > 0) return;
  assert.equal(decoded.pictures.length, pictures, `pictures, with the warnings: ${codes || "none"}`);
  assert.equal(decoded.faults, "");
}
