import { firstBox, typeAt } from "../../../remux/mp4/boxes.ts";
import { nalLengthBytes } from "../../../remux/mp4/joins.ts";
import { readIndexAt } from "../../../remux/mp4/read/movie-index.ts";
import { completeFileBoxes } from "../../../remux/mp4/read/file-boxes.ts";
import type { FragmentContext } from "../../../remux/mp4/read/fragment.ts";
import { readFileFragments } from "../../../remux/mp4/read/listed-samples.ts";
import { createBudget, maxFileSamples } from "../../../remux/mp4/read/indexed-sample.ts";
import { type InitTrack, readAllTracks } from "../../../remux/mp4/read/init.ts";
import { readSamplePlaces, type SamplePlaces } from "../../../remux/mp4/read/sample-tables.ts";
import type { OpenFile } from "../../../remux/open-file.ts";
import { type CheckedSamples, CheckedTrack, type CodedSamples } from "./sample-check.ts";

/**
 * Types of sample entries of codecs without NAL units whose samples have no long runs of zeros. PCM may, and so may lossless codecs, which
 * can store silence as it is, and AC-3 and E-AC-3, whose frames are filled with zeros before a checksum.
 */
const codecs = new Set("mp4a Opus .mp3 mp4v vp08 vp09 av01".split(" "));

/** Those whose samples have NAL units with lengths, and are not encrypted. */
const framed = new Set("avc1 avc3 hvc1 hev1".split(" "));

/**
 * Opens the samples of an MP4 file whose codecs compress; none of another file. The first streams are those of each track in the index; the
 * last one has the samples of all tracks in fragments, in their order in the file as far as it has one. Fragments are read when their samples are wanted.
 * @throws ServiceError `upstream_invalid`, also from the samples; the file system's own errors.
 */
export function openMp4Samples(file: OpenFile): CheckedSamples {
  const boxes = [...completeFileBoxes(file.fd, file.size)];
  const index = boxes.find(({ type }) => type === "moov");
  if (index === undefined) return { tracks: [], streams: [] };
  const bytes = readIndexAt(file, index);
  const tracks: readonly InitTrack[] = readAllTracks(bytes, firstBox(bytes));
  const budget = createBudget(file.size, maxFileSamples);
  const isIndexed = !boxes.some(({ type }) => type === "moof");
  const selections = new Map(tracks.map((track) => [track, createSelection(track, isIndexed)]));
  return {
    tracks: [...selections.values()].map(({ checked }) => checked),
    streams: [
      ...[...selections].map(([track, { select }]) => select(readSamplePlaces(bytes, track, budget))),
      readFragments(file, { tracks, budget }, (track, samples) => selections.get(track)!.select([samples])),
    ],
  };
}

/** @param isIndexed The places of its samples do not depend on fragments, which may say wrongly where their media are. */
function createSelection({ formats }: InitTrack, isIndexed: boolean) {
  const areFramed = formats.every(({ sampleEntry }) => framed.has(typeAt(sampleEntry, 4)));
  const checked = new CheckedTrack(formats[0]!.kind, isIndexed && areFramed);
  const lengths = formats.map(({ sampleEntry }) => {
    return codecs.has(typeAt(sampleEntry, 4)) ? 0 : nalLengthBytes(sampleEntry);
  });
  const isAv1 = formats.some(({ sampleEntry }) => typeAt(sampleEntry, 4) === "av01");
  return {
    checked,
    *select(all: Iterable<SamplePlaces>): Generator<CodedSamples> {
      for (const { entry, ...where } of all) {
        const lengthBytes = lengths[entry - 1] ?? null;
        if (lengthBytes !== null) yield { ...where, track: checked, lengthBytes, isAv1 };
      }
    },
  };
}

/** Yields the samples of the fragments, with their places in the file. */
function* readFragments(
  file: OpenFile,
  context: Pick<FragmentContext, "tracks" | "budget">,
  select: (track: InitTrack, samples: SamplePlaces) => Iterable<CodedSamples>,
): Generator<CodedSamples> {
  for (const { samples } of readFileFragments(file, { ...context, nextDts: new Map() }).flatMap((runs) => runs)) {
    if (samples[0] === undefined) continue;
    const { track, entry } = samples[0];
    const [offsets, sizes] = [new Float64Array(samples.length), new Uint32Array(samples.length)];
    for (const [i, sample] of samples.entries()) [offsets[i], sizes[i]] = [sample.offset, sample.size];
    yield* select(track, { entry, count: samples.length, offsets, sizes });
  }
}
