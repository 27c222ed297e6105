import { closeSync, openSync, readFileSync } from "node:fs";
import { openFile } from "../../src/remux/open-file.ts";
import { chosenBlocks, selectTracks } from "../../src/remux/matroska/blocks.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { packFrames } from "../../src/remux/matroska/frames.ts";
import { element, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { MatroskaWriter } from "../../src/remux/matroska/writer.ts";

interface Changes {
  /** Of the tracks, from 1. */
  numbers: readonly number[];
  /** So many blocks of an only track become one with a lace as in Xiph's containers. */
  laced?: number;
  /** Further elements of the tracks. */
  entry?: Uint8Array;
  /** What becomes of each frame. */
  change?: (frame: Uint8Array) => Uint8Array;
}

const xiphLace = 0x02;

/** Writes tracks of a Matroska file into another one. */
export function writeChanged(
  from: string,
  to: string,
  { numbers, laced = 1, entry = new Uint8Array(), ...changes }: Changes,
) {
  const { change = (frame) => frame } = changes;
  using source = openFile(from);
  const file = selectTracks(source.fd, numbers)!;
  const bytes = readFileSync(from);
  const fd = openSync(to, "w");
  const entries = file.tracks.map((track) =>
    element(ids.trackEntry, bytes.subarray(track.entry.body, track.entry.end), entry),
  );
  const options = {
    docType: "matroska",
    timestampScale: 1_000_000,
    entries,
    mainTrack: 1,
    title: null,
    others: () => [],
  } as const;
  const writer = new MatroskaWriter({ fd, ...options });
  const blocks = [...chosenBlocks(file)];
  for (let i = 0; i < blocks.length; i += laced) {
    const group = blocks.slice(i, i + laced);
    const frames = group.map(({ body, end }) => change(bytes.subarray(body, end)));
    const { ticks, track, isKey } = group[0]!;
    const flags = (isKey ? 0x80 : 0) | (laced > 1 ? xiphLace : 0);
    writer.add({ track, ticks, endTicks: ticks, isKey, ...packFrames(frames, flags), others: null });
  }
  writer.finish();
  closeSync(fd);
}

/** Returns the element of a track that says how its frames are compressed. */
export function compression(algorithm: number, settings: Uint8Array = new Uint8Array()): Uint8Array {
  const how = [element(ids.compressionAlgorithm, unsigned(algorithm)), element(ids.compressionSettings, settings)];
  return element(ids.encodings, element(ids.encoding, element(ids.compression, ...how)));
}
