import { readSync } from "node:fs";
import { chosenBlocks, selectAll } from "../../../remux/matroska/chosen-tracks.ts";
import type { OpenFile } from "../../../remux/open-file.ts";
import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";

/** Codecs that compress. */
const codecs = /^(?:V_MPEG|V_VP[89]|V_AV1|V_THEORA|A_AAC|A_OPUS|A_VORBIS|A_AC3|A_EAC3|A_FLAC|A_MPEG)/;

/**
 * Yields the kind of the track of each block of a Matroska or WebM file that has zeros of `runs` in it, but not at its end: there they
 * may be stuffing. None of another file.
 * @param runs In order.
 * @throws ServiceError `upstream_invalid` where the file is damaged; the file system's own errors.
 */
export function* findMatroskaHoles({ fd }: OpenFile, runs: readonly ByteSpan[]): Generator<TrackKind> {
  const file = runs.length === 0 ? undefined : selectAll(fd);
  if (file === undefined) return;
  const tracks = file.tracks.filter(({ codecId, isEncoded }) => codecs.test(codecId) && !isEncoded);
  const kinds = new Map(tracks.map(({ number, kind }) => [number, kind]));
  let next = 0;
  for (const { track, body, end } of chosenBlocks({ ...file, tracks })) {
    while (next < runs.length && runs[next]!.start < body) next += 1;
    const run = runs[next];
    if (run === undefined) return;
    const kind = kinds.get(track) ?? null;
    const last = Buffer.alloc(1);
    if (run.end > end || kind === null) continue;
    readSync(fd, last, 0, 1, end - 1);
    if (last[0] !== 0) yield kind;
  }
}
