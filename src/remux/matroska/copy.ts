import { damagedMatroskaError, elementsIn, ids, readBytes } from "./elements.ts";
import { type Block, chosenBlocks, type ChosenTracks, growingBlocks, type MissingBytes } from "./blocks.ts";
import { createUnpackers } from "./frames.ts";
import { type MatroskaTrack, roleFlags } from "./tracks.ts";
import { type CopyPosition, createTrackCopy } from "./track-copy.ts";
import { createUnlacer } from "./vorbis.ts";
import { type Additions, boundAdditions, type Cue } from "../additions.ts";
import { describe, maxDurationS, textBlock, textEntry } from "./added-elements.ts";
import { iso639Of } from "../language.ts";
import { type AudioLabel, roleNameOf } from "../track-details.ts";
import { element, text, unsigned } from "./write-elements.ts";
import { MatroskaWriter, type MatroskaWriterOptions, type WrittenBlock } from "./writer.ts";

/** Whether `copyMatroska` can copy these tracks: their frames are plain. */
export function isCopiable(files: readonly ChosenTracks[]): boolean {
  return files.every(({ tracks }) => tracks.every(({ isEncoded }) => !isEncoded));
}

/** Of a step; a block may have many bytes, more so if its frames were compressed. */
const stepBlocks = 256;
const stepBytes = 8 << 20;

/**
 * Copies tracks of Matroska files into one file, element by element: what they say of delay, padding, colour or
 * language is kept, whatever it is, and so are laces. The earliest first block gets the time 0; times are in the
 * longest ticks that a file has. Cues that begin after the last block are left out. Each step copies a bounded part.
 *
 * @throws ServiceError `upstream_invalid` if a file is damaged; the file system's own errors.
 */
export function* copyMatroska(files: readonly ChosenTracks[], target: CopyTarget): Generator<undefined, void> {
  const steps = copyTracks(files, target);
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) yield;
  step.value.finish();
}

/**
 * Copies tracks as `copyMatroska`, also of files that grow: yields what is missing before it can go on. Returns what completes the new file.
 * @throws as `copyMatroska`
 */
export function* copyTracks(
  files: readonly ChosenTracks[],
  { fd, docType, additions, kept = [], labels = [], isPlain = false, roomBytes, onCluster }: CopyTarget,
): Generator<MissingBytes | undefined, MatroskaWriter> {
  const tracks = files.flatMap((file) => file.tracks.map((track) => ({ file, track })));
  const audio = tracks.filter(({ track }) => track.kind === "audio");
  const entries = tracks.map((each, i) => {
    const rank = audio.indexOf(each);
    const stated = labels.length === 0 ? undefined : { language: null, ...labels[rank], isDefault: rank <= 0 };
    // Tags name the tracks that they are about; those of several files may have the same names.
    const uid = files.length === 1 ? undefined : i + 1;
    return copyEntry(each.file, each.track, { number: i + 1, uid, isPlain }, stated);
  });
  const timestampScale = Math.max(...files.map(({ header }) => header.timestampScale));
  const texts = addTextTracks(boundAdditions(additions, maxDurationS), entries);
  const firstVideo = tracks.findIndex(({ track }) => track.kind === "video");
  const mainTrack = Math.max(firstVideo, 0) + 1;
  const description = describe(additions, docType, kept);
  const target = { fd, docType, timestampScale, entries, mainTrack, roomBytes, onCluster };
  const writer = new MatroskaWriter({ ...target, ...description });
  let earliest = Infinity;
  for (const file of files) earliest = Math.min(earliest, yield* firstTicks(file, timestampScale));
  const startTicks = isPlain ? Math.min(0, earliest) : earliest;
  let nextText = 0;
  let [blocks, bytes] = [0, 0];
  for (const copied of copyBlocks(files, { startTicks, timestampScale, isPlain })) {
    if ("file" in copied) {
      yield copied;
      continue;
    }
    const untilS = (copied.ticks * timestampScale) / 1e9;
    for (; nextText < texts.length && texts[nextText]!.cue.startS <= untilS; nextText++) {
      const { cue, number } = texts[nextText]!;
      writer.add(textBlock(cue, number, timestampScale));
    }
    writer.add(copied);
    blocks += 1;
    bytes += copied.payload.length;
    if (blocks < stepBlocks && bytes < stepBytes) continue;
    [blocks, bytes] = [0, 0];
    yield;
  }
  if (startTicks === Infinity) throw damagedMatroskaError("it has no media");
  return writer;
}

export interface CopyTarget extends Pick<MatroskaWriterOptions, "roomBytes" | "onCluster"> {
  /** The new file, open for writing. */
  fd: number;
  docType: "webm" | "matroska";
  additions: Additions;
  /** Further elements of the Segment; default: none. */
  kept?: readonly Uint8Array[];
  /**
   * Of the audio tracks in their order; what is unknown stays as their entries say. The first one and the video are then the default
   * tracks. Default: everything stays as the entries say.
   */
  labels?: readonly AudioLabel[];
  /** Compressed frames are written as they are without it, and keep their times; default: they stay compressed. */
  isPlain?: boolean;
}

/** Adds the entries of the subtitles to `entries`; returns the cues of all in order, with the numbers of their tracks. */
function addTextTracks({ subtitles }: Additions, entries: Uint8Array[]): { cue: Cue; number: number }[] {
  const firstForced = subtitles.findIndex(({ role }) => role === "forced");
  const texts = subtitles.flatMap((track, index) => {
    const number = entries.push(textEntry(track, entries.length + 1, index === firstForced));
    return track.cues.map((cue) => ({ cue, number }));
  });
  return texts.toSorted((a, b) => a.cue.startS - b.cue.startS);
}

/** Yields them with their times in ticks of `timestampScale`, and what is missing before the next one. */
function* blocksIn(file: ChosenTracks, timestampScale: number): Generator<Block | MissingBytes, undefined> {
  const ratio = file.header.timestampScale / timestampScale;
  for (const block of file.isComplete === undefined ? chosenBlocks(file) : growingBlocks(file)) {
    if ("file" in block) {
      yield block;
      continue;
    }
    const { ticks, duration } = block;
    yield { ...block, ticks: Math.round(ticks * ratio), duration: duration && Math.round(duration * ratio) };
  }
}

/** Returns the earliest time of the first blocks of all tracks, Infinity if there is none; yields what is missing for it. */
function* firstTicks(file: ChosenTracks, timestampScale: number): Generator<MissingBytes, number> {
  const firsts = new Map<number, number>();
  for (const block of blocksIn(file, timestampScale)) {
    if ("file" in block) yield block;
    else if (!firsts.has(block.track)) firsts.set(block.track, block.ticks);
    if (firsts.size === file.tracks.length) break;
  }
  return Math.min(...firsts.values());
}

/** Yields the blocks of all files as they are in the new one, in the order of their times, and what is missing before the next one. */
function* copyBlocks(
  files: readonly ChosenTracks[],
  { isPlain, ...times }: Pick<CopyPosition, "startTicks" | "timestampScale"> & { isPlain: boolean },
): Generator<WrittenBlock | MissingBytes> {
  const tracks = files.flatMap((file) => file.tracks);
  const readers = files.map((file): BlockReader => {
    const unpackerOf = isPlain ? createUnpackers(file) : undefined;
    const copies = file.tracks.map((track) => {
      const unlace = isPlain ? createUnlacer(file, track, times.timestampScale) : undefined;
      const position = { ...times, number: tracks.indexOf(track) + 1, unpack: unpackerOf?.(track), unlace };
      return [track.number, createTrackCopy(file, track, position)] as const;
    });
    return { copies: new Map(copies), blocks: blocksIn(file, times.timestampScale), next: undefined };
  });
  for (const reader of readers) yield* advance(reader);
  for (;;) {
    const [reader] = readers.filter(({ next }) => next).toSorted((a, b) => a.next!.ticks - b.next!.ticks);
    if (!reader?.next) return;
    yield* reader.copies.get(reader.next.track)!(reader.next);
    yield* advance(reader);
  }
}

interface BlockReader {
  copies: ReadonlyMap<number, (block: Block) => WrittenBlock[]>;
  blocks: Generator<Block | MissingBytes, undefined>;
  /** Undefined at the end. */
  next: Block | undefined;
}

/** Goes on to the next block; yields what is missing before it. */
function* advance(reader: BlockReader): Generator<MissingBytes, void> {
  for (;;) {
    const { value } = reader.blocks.next();
    if (value !== undefined && "file" in value) yield value;
    else return void (reader.next = value);
  }
}

/** Returns the entry of a track with another number and, if there is one, another UID, and with what is stated of it. */
function copyEntry(
  { fd, source }: ChosenTracks,
  track: MatroskaTrack,
  { number, uid, isPlain }: { number: number; uid: number | undefined; isPlain: boolean },
  stated?: AudioLabel & { isDefault: boolean },
): Uint8Array {
  const language = stated?.language ?? null;
  const ownName = track.name === "" ? stated && roleNameOf(stated) : undefined;
  const name = stated?.name ?? ownName;
  const flag = roleFlags.get(stated?.audio_role ?? "original");
  const own = new Map<number, Uint8Array>([[ids.trackNumber, unsigned(number)]]);
  if (uid !== undefined) own.set(ids.trackUid, unsigned(uid));
  if (stated !== undefined) own.set(ids.flagDefault, unsigned(Number(stated.isDefault)));
  if (language !== null) own.set(ids.language, text(iso639Of(language))).set(ids.languageBcp47, text(language));
  if (name !== undefined) own.set(ids.name, text(name));
  if (flag !== undefined) own.set(flag, unsigned(1));
  const left = new Set<number>([...own.keys(), ...(isPlain ? [ids.encodings] : [])]);
  const kept = [...elementsIn(source, track.entry)].filter(({ id }) => !left.has(id));
  const copies = kept.map((child) => element(child.id, readBytes(fd, child)));
  return element(ids.trackEntry, ...[...own].map(([id, content]) => element(id, content)), ...copies);
}
