import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Download } from "../../../src/engines/engine.ts";
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
import { type OpenEngine, showExhibit, type EngineHarness } from "./harness.ts";

/** Every kind of medium, from the site to the file. */
export function describeMatrix(open: OpenEngine): void {
  const examine = createExaminer();
  describe.concurrent("makes of", () => {
    for (const exhibit of readExhibits().values()) {
      it(`${exhibit.name} a file (${exhibit.ext}) with all of its frames`, async () => {
        await using trial = await showExhibit(open, exhibit);
        const { site, job, progress } = trial;
        const made = await trial.download();
        expect(made.path.startsWith(`${job.folder}/`)).toBe(true);
        const bytes = await expectTrueRecord(made);
        await expectAll(made, exhibit, await examine(exhibit, trial));
        if (job.format.protocol === "https" && job.audio === null) {
          expect(bytes.equals(site.resources.get(exhibit.entry)?.body ?? Buffer.of())).toBe(true);
        }
        expect(progress.at(-1)).toMatchObject({ downloaded_bytes: expect.any(Number) });
      });
    }
    describeSoundAlone(open, examine);
  });

  it.skipIf(!hasFfmpeg)("is judged by an ffmpeg that sees a single damaged picture", async () => {
    const exhibit = readExhibits().get("an MP4 with its index in front")!;
    await using trial = await showExhibit(open, exhibit);
    const bytes = Buffer.from(exhibit.sources[0]!.data);
    bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 200);
    const path = await trial.keep("damaged.mp4", bytes);
    const { faults, pictures } = await decode(path, await probe(path));
    expect(faults).not.toBe("");
    expect(pictures).not.toEqual((await examine(exhibit, trial)).pictures);
  });
}

function describeSoundAlone(open: OpenEngine, examine: Examine): void {
  for (const name of [
    "HLS in MPEG-TS with B-frames",
    "HLS in fMP4 with both tracks in one",
    "an MP4 with its index in front",
    "a WebM of VP9 and Opus",
  ]) {
    it(`${name} a file without the pictures where only sound is wanted`, async () => {
      const exhibit = readExhibits().get(name)!;
      await using trial = await showExhibit(open, exhibit);
      const made = await trial.download({ audioOnly: true });
      await expectTrueRecord(made);
      const { audio } = await examine(exhibit, trial);
      const { streams } = await probe(made.path);
      expect(streams).toMatchObject([{ kind: "audio", codec: audio?.codec }]);
      expect(streams[0]?.frames).toBe(audio?.frames);
      expect(made).toMatchObject({ width: null, height: null });
      expect(made.mime_type).toMatch(/^audio\//);
      expect(made.ext).toBe(exhibit.ext === "webm" ? "webm" : "m4a");
    });
  }
}

/** What the engine says of the file is so; gives its bytes. */
async function expectTrueRecord({ path, size, sha256, duration }: Download): Promise<Buffer> {
  const bytes = await readFile(path);
  expect(size).toBe(bytes.length);
  expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
  expect(duration).toBeGreaterThan(0);
  return bytes;
}

const clipS = 6;

async function expectAll(made: Download, exhibit: MediaFixture, source: Examined): Promise<void> {
  const { times, ext, name } = exhibit;
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

/** It decodes without a fault, and to the very pictures of the source. */
async function expectPictures(
  path: string,
  found: Probe,
  { pictures, times }: Pick<Examined, "pictures"> & { times: number },
): Promise<void> {
  const decoded = await decode(path, found);
  expect(decoded.faults).toBe("");
  expect(decoded.pictures).toEqual(Array.from({ length: times }, () => pictures).flat());
}

/** The tracks of an exhibit's sources, and their pictures where ffmpeg can tell. */
type Examined = { [kind in ProbedStream["kind"]]?: ProbedStream } & Pick<Decoded, "pictures">;
type Examine = (exhibit: MediaFixture, trial: EngineHarness) => Promise<Examined>;

/** Looks at each source only once. */
function createExaminer(): Examine {
  const known = new Map<string, Promise<Probe & Pick<Decoded, "pictures">>>();

  async function look({ data, ext }: Source, name: string, trial: EngineHarness) {
    const path = await trial.keep(`${name}.${ext}`, data);
    const found = await probe(path);
    const { pictures } = hasFfmpeg ? await decode(path, found) : { pictures: [] };
    return { ...found, pictures };
  }

  return async ({ sources }, trial) => {
    const examined: Examined = { pictures: [] };
    for (const source of sources) {
      const name = createHash("sha1").update(source.data).digest("hex");
      const looked = known.get(name) ?? look(source, name, trial);
      known.set(name, looked);
      const { streams, pictures } = await looked;
      for (const stream of streams) examined[stream.kind] ??= stream;
      if (pictures.length > 0) examined.pictures = pictures;
    }
    return examined;
  };
}
