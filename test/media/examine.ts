import { createHash } from "node:crypto";
import { expect } from "vitest";
import type { MediaFixture, Source } from "./media-fixtures.ts";
import { decode, type Decoded, hasFfmpeg, probe, type ProbedStream } from "./probe.ts";

/** The tracks of a fixture's sources, and their decoded frames if ffmpeg is installed. */
export type Examined = { [kind in ProbedStream["kind"]]?: ProbedStream } & Pick<Decoded, "pictures">;
/** Examines the sources of a fixture, which `keep` writes to files. */
export type Examine = (fixture: MediaFixture, keep: Keep) => Promise<Examined>;
type Keep = (name: string, data: Buffer) => Promise<string>;

/** Looks at each source only once. */
export function createExaminer(): Examine {
  const known = new Map<string, ReturnType<typeof look>>();

  async function look({ data, ext }: Source, name: string, keep: Keep) {
    return decodeIfPossible(await keep(`${name}.${ext}`, data));
  }

  return async ({ sources }, keep) => {
    const examined: Examined = { pictures: [] };
    for (const source of sources) {
      const name = createHash("sha1").update(source.data).digest("hex");
      const looked = known.get(name) ?? look(source, name, keep);
      known.set(name, looked);
      const { streams, pictures } = await looked;
      for (const stream of streams) examined[stream.kind] ??= stream;
      if (pictures.length > 0) examined.pictures = pictures;
    }
    return examined;
  };
}

/** Without ffmpeg, finds no faults and no pictures. */
async function decodeIfPossible(path: string): Promise<Decoded> {
  return hasFfmpeg ? decode(path) : { ...(await probe(path)), faults: "", pictures: [] };
}

const clipS = 6;

/** Expects the tracks of a fixture in a file that was made from it, with all their frames. */
export async function expectFrames(
  made: { path: string; duration: number | null },
  { times }: MediaFixture,
  { video, audio, pictures }: Examined,
): Promise<void> {
  const found = await decodeIfPossible(made.path);
  const wanted = [video, audio].filter((stream) => stream !== undefined);
  expect(found.streams).toEqual(wanted.map((one) => ({ ...one, frames: one.frames * times })));
  expect(Math.abs(found.durationS - clipS * times)).toBeLessThanOrEqual(0.1);
  expect(Math.abs((made.duration ?? 0) - clipS * times)).toBeLessThanOrEqual(0.1);
  if (!hasFfmpeg) return;
  expect(found.faults).toBe("");
  expect(found.pictures).toEqual(Array.from({ length: times }, () => pictures).flat());
}
