import assert from "node:assert/strict";
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ServiceError } from "../../src/model/errors.ts";
import { Format, PageInfo } from "../../src/model/page-info.ts";
import type { Manifest } from "../../src/manifests/manifest.ts";
import type { Outcome } from "./target.ts";

const schema = TypeCompiler.Compile(
  Type.Object({
    formats: Type.Array(Format, { maxItems: 2_000 }),
    subtitles: PageInfo.properties.subtitles,
    duration: PageInfo.properties.duration,
    live_status: PageInfo.properties.live_status,
  }),
);

/** What is invalid, or cut off. */
const refusals: ReadonlySet<string> = new Set(["upstream_invalid", "upstream_unreachable"]);

/** Asserts that the outcome is a manifest within its limits or an error that a manifest may cause. */
export function checkManifest(outcome: Outcome<Manifest>): void {
  if ("error" in outcome) {
    if (outcome.error instanceof ServiceError && refusals.has(outcome.error.code)) return;
    throw outcome.error;
  }
  const manifest = outcome.value;
  assert.deepEqual(schema.Errors(manifest).First(), undefined);
  const { formats, subtitles } = manifest;
  assert.equal(new Set(formats.map((format) => format.format_id)).size, formats.length);
  const urls = [...formats, ...Object.values(subtitles).flat()].map((entry) => entry.url);
  for (const url of urls) {
    assert.match(url, /^https?:/);
    assert.ok(url.length <= 8_192, `a URL of ${url.length} characters`);
  }
  for (const { format_id, vcodec, tbr, fps } of formats) {
    assert.ok(format_id.length > 0 && format_id.length <= 255, format_id);
    assert.ok(vcodec !== "" && tbr !== 0 && fps !== 0, "unknown is null");
  }
}
