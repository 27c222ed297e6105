import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Download, DownloadProgress } from "../../../src/engines/engine.ts";
import { type MediaFixture, readExhibits, type Source } from "../../media/media-fixtures.ts";
import {
  decode,
  type Decoded,
  hasFfmpeg,
  isIndexFirst,
  type Probe,
  probe,
  type ProbedStream,
} from "../../media/probe.ts";
import { type OpenEngine, openFixture, type EngineHarness } from "./harness.ts";

/** Every kind of media, from the site to the file. */
export function describeMatrix(open: OpenEngine): void {
  const examine = createExaminer();
  describe.concurrent("makes", () => {
    for (const fixture of readExhibits().values()) {
      it(`a ${fixture.ext} file with all frames of ${fixture.name}`, async () => {
        await using harness = await openFixture(open, fixture);
        const { site, job, progress } = harness;
        const made = await harness.download();
        expect(made.path.startsWith(`${job.folder}/`)).toBe(true);
        const bytes = await expectTrueRecord(made);
        await expectAll(made, fixture, await examine(fixture, harness));
        if (job.format.protocol === "https" && job.audio === null) {
          expect(bytes.equals(site.resources.get(fixture.entry)?.body ?? Buffer.of())).toBe(true);
        }
        expectProgress(progress);
      });
    }
    describeAudioOnly(open, examine);
  });

  it.skipIf(!hasFfmpeg)("is checked by an ffmpeg that notices a single damaged frame", async () => {
    const fixture = readExhibits().get("an MP4 with its index in front")!;
    await using harness = await openFixture(open, fixture);
    const bytes = Buffer.from(fixture.sources[0]!.data);
    bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 200);
    const path = await harness.keep("damaged.mp4", bytes);
    const { faults, pictures } = await decode(path, await probe(path));
    expect(faults).not.toBe("");
    expect(pictures).not.toEqual((await examine(fixture, harness)).pictures);
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
      const fixture = readExhibits().get(name)!;
      await using harness = await openFixture(open, fixture);
      const made = await harness.download({ audioOnly: true });
      await expectTrueRecord(made);
      const { audio } = await examine(fixture, harness);
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

const clipS = 6;

async function expectAll(made: Download, fixture: MediaFixture, source: Examined): Promise<void> {
  const { times, ext, name } = fixture;
  const { video, audio } = source;
  const found = await probe(made.path);
  const wanted = [video, audio].filter((stream) => stream !== undefined);
  expect(found.streams).toEqual(wanted.map((one) => ({ ...one, frames: one.frames * times })));
  expect(Math.abs(found.durationS - clipS * times)).toBeLessThanOrEqual(0.1);
  expect(Math.abs((made.duration ?? 0) - clipS * times)).toBeLessThanOrEqual(0.1);
  const { width = null, height = null } = video ?? {};
  expect(made).toMatchObject({ ext, width, height });
  expect(made.mime_type).toMatch(video === undefined ? /^audio\// : /^video\//);
  if (ext === "mp4" && !name.includes("index at the end")) {
    expect(await isIndexFirst(made.path)).toBe(true);
  }
  if (hasFfmpeg) await expectPictures(made.path, found, { ...source, times });
}

/** The file decodes without an error to the same frames as its source. */
async function expectPictures(
  path: string,
  found: Probe,
  { pictures, times }: Pick<Examined, "pictures"> & { times: number },
): Promise<void> {
  const decoded = await decode(path, found);
  expect(decoded.faults).toBe("");
  expect(decoded.pictures).toEqual(Array.from({ length: times }, () => pictures).flat());
}

/** The tracks of a fixture's sources, and their decoded frames if ffmpeg is installed. */
type Examined = { [kind in ProbedStream["kind"]]?: ProbedStream } & Pick<Decoded, "pictures">;
type Examine = (fixture: MediaFixture, harness: EngineHarness) => Promise<Examined>;

/** Looks at each source only once. */
function createExaminer(): Examine {
  const known = new Map<string, Promise<Probe & Pick<Decoded, "pictures">>>();

  async function look({ data, ext }: Source, name: string, harness: EngineHarness) {
    const path = await harness.keep(`${name}.${ext}`, data);
    const found = await probe(path);
    const { pictures } = hasFfmpeg ? await decode(path, found) : { pictures: [] };
    return { ...found, pictures };
  }

  return async ({ sources }, harness) => {
    const examined: Examined = { pictures: [] };
    for (const source of sources) {
      const name = createHash("sha1").update(source.data).digest("hex");
      const looked = known.get(name) ?? look(source, name, harness);
      known.set(name, looked);
      const { streams, pictures } = await looked;
      for (const stream of streams) examined[stream.kind] ??= stream;
      if (pictures.length > 0) examined.pictures = pictures;
    }
    return examined;
  };
}
