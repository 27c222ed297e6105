import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Download, DownloadProgress } from "../../../src/engines/engine.ts";
import { createExaminer, type Examine, type Examined, expectFrames } from "../../media/examine.ts";
import { type MediaFixture, readMediaFixtures } from "../../media/media-fixtures.ts";
import { decode, hasFfmpeg, isIndexFirst, probe } from "../../media/probe.ts";
import { type OpenEngine, openMedia } from "./harness.ts";

/** Every kind of media, from the site to the file. */
export function describeMatrix(open: OpenEngine): void {
  const examine = createExaminer();
  describe.concurrent("makes", () => {
    for (const fixture of readMediaFixtures().values()) {
      it(`a ${fixture.ext} file with all frames of ${fixture.name}`, async () => {
        await using harness = await openMedia(open, fixture);
        const { site, job, progress } = harness;
        const made = await harness.download();
        expect(made.path.startsWith(`${job.folder}/`)).toBe(true);
        const bytes = await expectTrueRecord(made);
        await expectAll(made, fixture, await examine(fixture, harness.keep));
        if (job.format.protocol === "https" && job.audio === null) {
          expect(bytes.equals(site.resources.get(fixture.entry)?.body ?? Buffer.of())).toBe(true);
        }
        expectProgress(progress);
      });
    }
    describeAudioOnly(open, examine);
  });

  it.skipIf(!hasFfmpeg)("is checked by an ffmpeg that notices a single damaged frame", async () => {
    const fixture = readMediaFixtures().get("an MP4 with its index in front")!;
    await using harness = await openMedia(open, fixture);
    const bytes = Buffer.from(fixture.sources[0]!.data);
    bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 200);
    const path = await harness.keep("damaged.mp4", bytes);
    const { faults, pictures } = await decode(path);
    expect(faults).not.toBe("");
    expect(pictures).not.toEqual((await examine(fixture, harness.keep)).pictures);
  });
}

function describeAudioOnly(open: OpenEngine, examine: Examine): void {
  for (const name of [
    "HLS in MPEG-TS with B-frames",
    "HLS in fMP4 with both tracks in one",
    "an MP4 with its index in front",
    "a WebM of VP9 and Opus",
  ]) {
    it(`a file without video of ${name} if only audio is wanted`, async () => {
      const fixture = readMediaFixtures().get(name)!;
      await using harness = await openMedia(open, fixture);
      const made = await harness.download({ audioOnly: true });
      await expectTrueRecord(made);
      const { audio } = await examine(fixture, harness.keep);
      const { streams } = await probe(made.path);
      expect(streams).toMatchObject([{ kind: "audio", codec: audio?.codec }]);
      expect(streams[0]?.frames).toBe(audio?.frames);
      expect(made).toMatchObject({ width: null, height: null });
      expect(made.mime_type).toMatch(/^audio\//);
      expect(made.ext).toBe(fixture.ext === "webm" ? "webm" : "m4a");
    });
  }
}

/** Bytes only increase, and the last report is that of a complete download. */
function expectProgress(progress: readonly DownloadProgress[]): void {
  const bytes = progress.map(({ downloaded_bytes }) => downloaded_bytes ?? -1);
  expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
  const total = bytes.at(-1);
  expect(total).toBeGreaterThan(0);
  expect(progress.at(-1)).toEqual({
    stage: "processing",
    downloaded_bytes: total,
    total_bytes: total,
  });
}

/** The engine's record of the file is true; returns its bytes. */
async function expectTrueRecord({ path, size, sha256, duration }: Download): Promise<Buffer> {
  const bytes = await readFile(path);
  expect(size).toBe(bytes.length);
  expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
  expect(duration).toBeGreaterThan(0);
  return bytes;
}

async function expectAll(made: Download, fixture: MediaFixture, source: Examined): Promise<void> {
  const { ext, name } = fixture;
  await expectFrames(made, fixture, source);
  const { width = null, height = null } = source.video ?? {};
  expect(made).toMatchObject({ ext, width, height, warnings: [] });
  expect(made.mime_type).toMatch(source.video === undefined ? /^audio\// : /^video\//);
  if (ext === "mp4" && !name.includes("index at the end")) {
    expect(await isIndexFirst(made.path)).toBe(true);
  }
}
