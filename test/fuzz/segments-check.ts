import assert from "node:assert/strict";
import { ServiceError } from "../../src/model/errors.ts";
import type { InitSection, Segment, SegmentList } from "../../src/manifests/segments.ts";
import type { Outcome } from "./target.ts";

const codes: ReadonlySet<string> = new Set(
  "upstream_invalid upstream_unreachable drm_protected address_blocked live_stream format_unavailable".split(" "),
);

/** Asserts that the outcome is a list within its limits or an error that a manifest may cause. */
export function checkSegments(outcome: Outcome<SegmentList>): void {
  if ("error" in outcome) {
    if (outcome.error instanceof ServiceError && codes.has(outcome.error.code)) return;
    throw outcome.error;
  }
  const { segments, hasEnded, refreshS } = outcome.value;
  assert.ok(segments.length <= 200_000, `${segments.length} segments`);
  assert.ok(segments.length > 0 || !hasEnded, "ended without segments");
  assert.ok(hasEnded || (refreshS >= 1 && refreshS <= 60), `refreshS ${refreshS}`);
  let last: Segment | undefined;
  for (const segment of segments) {
    checkSegment(segment, last);
    last = segment;
  }
}

function checkSegment(segment: Segment, last: Segment | undefined): void {
  const { init, key, durationS, sequence, timeline, offsetS } = segment;
  checkPart(segment);
  if (init !== null && init !== last?.init) checkPart(init);
  if (key !== null) checkUrl(key.url);
  if (key !== null && !/^[\da-f]{32}$/.test(key.iv)) assert.fail(`IV ${key.iv}`);
  if (!(durationS >= 0 && Number.isFinite(durationS))) assert.fail(`durationS ${durationS}`);
  if (offsetS !== null && !Number.isFinite(offsetS)) assert.fail(`offsetS ${offsetS}`);
  if (!Number.isSafeInteger(sequence)) assert.fail(`sequence ${sequence}`);
  if (!Number.isSafeInteger(timeline)) assert.fail(`timeline ${timeline}`);
  if (last === undefined) return;
  if (sequence <= last.sequence) assert.fail(`${sequence} after ${last.sequence}`);
  if (timeline < last.timeline) assert.fail(`timeline ${timeline} after ${last.timeline}`);
}

function checkPart({ url, range }: Pick<InitSection, "url" | "range">): void {
  checkUrl(url);
  if (range === null) return;
  const { offset, length = Number.NaN } = range;
  const isRange = offset >= 0 && length > 0 && Number.isSafeInteger(offset + length);
  if (!isRange) assert.fail(`${length} bytes from ${offset}`);
}

function checkUrl(url: string): void {
  if (!/^https?:/.test(url) || url.length > 8_192) assert.fail(`the URL ${url.slice(0, 200)}`);
}
