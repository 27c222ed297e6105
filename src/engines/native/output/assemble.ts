import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isUpstreamError, ServiceError } from "../../../model/errors.ts";
import { noAdditions } from "../../../remux/additions.ts";
import { firstAudio } from "../../../remux/audio-choice.ts";
import { SkipError } from "../../../remux/timelines.ts";
import { assertSampleCounts } from "../../../remux/mp4/read/listed-samples.ts";
import { cutMp4, type CutOptions } from "../../../remux/mp4/cut.ts";
import type { MediaRange, TrackKind } from "../../../remux/samples.ts";
import { sniffFile } from "../../../remux/sniff.ts";
import { mapSources, type Plan, type Source } from "../sources/plan.ts";
import { hasEnd, hasSelection, selectAll } from "../sources/select-segments.ts";
import type { PartialMedia } from "../partial/partial-file.ts";
import { positionFrom } from "../texts/place-cues.ts";
import { assembleMedia } from "./assemble-media.ts";
import { checkEncrypted } from "./check-merged.ts";
import type { Assembled, AssembleOptions } from "./assemble-streams.ts";
import type { Written } from "./demux-session.ts";
import { hasCopied } from "./count-packets.ts";
import { chooseInFile, mergeFiles } from "./merge.ts";
import type { PendingAdditions } from "./remux.ts";
import { extractAudio } from "../../../remux/audio-files/extract.ts";

/**
 * Fetches the plan's sources and makes the file of them that is wanted, in `folder`.
 *
 * @throws ServiceError of `assembleMedia` and `assembleRanges`
 */
export async function assemble(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  const make = options.ranges.length > 0 ? assembleRanges : assembleMedia;
  return options.isAudioFile ? assembleAudioFile(plan, options, make) : make(plan, options);
}

/** Puts the audio into a file of its own kind, if its codec has one. */
async function assembleAudioFile(plan: Plan, options: AssembleOptions, make: typeof assemble): Promise<Assembled> {
  const { folder, embed, inspect, withTimeLimit, signal } = options;
  let position = positionFrom(0);
  const additions: PendingAdditions = {
    ...options.additions,
    get(media) {
      position = media;
      return options.additions.get(media);
    },
  };
  const assembled = await make(plan, { ...options, additions });
  const { path, copiedFrom = path } = assembled;
  const { duration, mime_type } = await inspect(path);
  if (!options.audioOnly && mime_type.startsWith("video/")) return assembled;
  await additions.ready();
  const added = embed === "none" ? noAdditions : await additions.get(position);
  const target = join(folder, "audio-file");
  const isCut = options.ranges.length > 0;
  const isExtracted = await withTimeLimit("merge", [path], async () => {
    const copied = await extractAudio(path, target, added, { durationS: duration ?? Infinity, isCut, signal });
    return copied !== null && hasCopied(target, copied, path, isCut);
  });
  return isExtracted ? { ...assembled, path: target, copiedFrom, presentedS: duration } : assembled;
}

/**
 * Makes a file of the media that the ranges need, and cuts it. Fetches all media if those that were selected are too few,
 * or their times do not show where they belong.
 *
 * @throws ServiceError of `assembleMedia` and `cutMp4`
 */
async function assembleRanges(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  const selected = await withParts(plan, options);
  if (hasSelection(selected)) {
    try {
      const cut = await tryCut(await inOneKind(selected, options), options);
      if (cut !== null) return cut;
    } catch (error) {
      const isDamaged = selected !== plan && isUpstreamError(error);
      if (!(error instanceof SkipError) && !isDamaged) throw error;
    }
  }
  for (const source of plan.sources) await options.fetcher.dropPart(source);
  const cut = await tryCut(selectAll(plan), options);
  if (cut === null)
    throw new ServiceError("internal", "all media are too few for a part of them", { retryable: false });
  return cut;
}

/** Returns the plan with what the ranges need of each source that is one file, if that can be fetched apart from the rest. */
async function withParts(plan: Plan, { fetcher, folder, ranges, audioOnly }: AssembleOptions): Promise<Plan> {
  const [first, ...audio] = plan.sources;
  const acceptsHoles = plan.isPassthrough && (!audioOnly || first.format.vcodec === "none");
  const withPart = async (source: Source, zeroS: number | null): Promise<Source> => {
    const options = { ranges, audioOnly, zeroS, acceptsHoles };
    return { ...source, part: await fetcher.fetchPart(source, join(folder, `${source.name}.part`), options) };
  };
  const main = await withPart(first, null);
  const fetched: Plan = { ...plan, sources: [main, ...audio] };
  const zeroS = main.part?.zeroS ?? null;
  // Nothing else says where the time of ranges counts from.
  if (zeroS === null) return main.part === null ? plan : fetched;
  const isKept = (source: Source) => source === main || source.role === "fallback";
  return mapSources(fetched, async (source) => (isKept(source) ? source : await withPart(source, zeroS)));
}

/** Returns the plan with the parts as MP4 if some are MP4 and others are not, which can be put together only so. */
async function inOneKind(plan: Plan, options: AssembleOptions): Promise<Plan> {
  const containers = new Set(plan.sources.map(({ part }) => part && sniffFile(part.path)));
  const isMixed = containers.size > 1 && !containers.has(null);
  const [main] = plan.sources;
  if (!isMixed || !containers.has("mp4") || main.part?.hasHoles === true) return plan;
  const chosen = plan.sources.find(({ name }) => name === "audio") ?? main;
  return mapSources(plan, async (source) => {
    const audioChoice = source === chosen ? options.audioChoice : firstAudio;
    const audioOnly = options.audioOnly || source !== main;
    return { ...source, part: await asMp4(source, { ...options, audioChoice, audioOnly }) };
  });
}

async function asMp4({ format, part }: Source, options: AssembleOptions): Promise<PartialMedia | null> {
  if (part === null) return null;
  const { path, chunks = [{ path, skippedS: 0 }] } = part;
  if (sniffFile(path) === "mp4") {
    return { ...part, chunks: chunks.map((chunk) => ({ zeroS: 0, ...chunk })) };
  }
  const target = `${path}.mp4`;
  const { audioOnly, audioChoice, withTimeLimit, additions, signal } = options;
  const files = [{ role: "main", path, label: format }] as const;
  const { originS, details, warnings } = await withTimeLimit("merge", [path], () =>
    mergeFiles({ files, target, audioOnly, audioChoice, additions: without(additions), isMp4Wanted: true, signal }),
  );
  if (warnings.some(({ code }) => code === "frames_missing")) throw new SkipError("a part was not copied whole");
  await rm(path, { force: true });
  return { ...part, path: target, chunks: [{ path: target, skippedS: 0, zeroS: originS }], details };
}

const without = (additions: PendingAdditions): PendingAdditions => {
  return { ...additions, bytes: () => 0, get: () => Promise.resolve(noAdditions) };
};

/** Returns `null` if the media that were fetched do not have all that the ranges need. */
async function tryCut(plan: Plan, options: AssembleOptions): Promise<Assembled | null> {
  const { folder, ranges, audioChoice, maxBytes, onWritten, withTimeLimit, additions, signal } = options;
  let position = positionFrom(0);
  const later: PendingAdditions = {
    ...additions,
    bytes: () => 0,
    async get(media) {
      position = media;
      return noAdditions;
    },
  };
  const whole = (await openPart(plan, options)) ?? (await assembleMedia(plan, { ...options, additions: later }));
  // Its samples may be in other segments.
  if (hasSelection(plan) && whole.written !== null && lacksTrack(whole.written)) return null;
  if (hasSelection(plan) && !options.audioOnly && mayLackVideo(plan, whole)) return null;
  await additions.ready();
  const target = join(folder, "cut");
  if (whole.written !== null) assertSampleCounts(whole.path, whole.written.tracks);
  const cut = await withTimeLimit("merge", [whole.path], () =>
    cutMp4({
      source: whole.path,
      target,
      ranges,
      // Of other files they are known.
      ...(whole.written === null && { language: plan.sources[0].format.language, audio: audioChoice }),
      missing: missingOf(plan, whole),
      isWhole: plan.sources.every(hasEnd),
      maxBytes,
      additions: (shown) => additions.get({ ...position, cut: shown }),
      additionBytes: () => additions.bytes(),
      onWritten,
      signal,
    }),
  );
  if (cut === null) return null;
  // A file as published is among the parts.
  const parts = plan.sources.flatMap(({ part }) => [part?.path, ...(part?.chunks ?? []).map(({ path }) => path)]);
  for (const path of [join(folder, "result"), ...parts]) if (path !== undefined) await rm(path, { force: true });
  // The end of each part is one of its edit list.
  const warnings = whole.warnings.filter(({ code }) => code !== "end_padding");
  return { ...whole, path: target, warnings, cut };
}

const lacksTrack = ({ listed, tracks }: Written): boolean =>
  listed.some((kind) => tracks.every((track) => track.kind !== kind));

/** Whether video may begin after one of the discontinuities of a list: the time of ranges counts from there. */
function mayLackVideo({ sources: [main] }: Plan, { written }: Assembled): boolean {
  if (main.kind === "file" || main.format.vcodec === "none" || written === null) return false;
  const timelines = new Set(main.list.segments.map(({ timeline }) => timeline));
  return timelines.size > 1 && written.tracks.every(({ kind }) => kind !== "video");
}

/** Returns the part of a published MP4 that has been fetched; `null`: there is none that can be cut as it is. */
async function openPart({ sources: [main] }: Plan, options: AssembleOptions): Promise<Assembled | null> {
  const { audioChoice, withTimeLimit } = options;
  if (main.part?.hasHoles !== true) return null;
  const { path } = main.part;
  if (audioChoice.isAsked) await withTimeLimit("read", [path], () => chooseInFile(path, audioChoice));
  return { path, written: null, warnings: checkEncrypted(path) };
}

/** Of times in two containers; holes end that much early. */
const roundingS = 0.01;

/** Returns what a file lacks because it was not fetched, seconds from its start. */
function missingOf(plan: Plan, { written, joined = [], originS: startS = 0 }: Assembled): CutOptions["missing"] {
  const originS = written?.originS ?? 0;
  // Of what was copied from another container, so that times are rounded.
  const copiedS = originS + startS + roundingS;
  const cutSources = new Set(plan.sources.filter((source) => !hasEnd(source)).map(({ name }) => name));
  const tracks = [
    ...(written?.tracks ?? []).map((track) => ({ ...track, originS, isCut: cutSources.has(track.source) })),
    ...joined
      .flatMap((segments) => segments.tracks())
      .map((track) => ({ ...track, originS: copiedS, isCut: cutSources.size > 0 })),
  ];
  const parts = plan.sources.flatMap(({ part }) => part ?? []);
  const move = (range: MediaRange, byS: number) => ({ startS: range.startS - byS, endS: range.endS - byS });
  const of = (kind: TrackKind) => [
    ...tracks
      .filter((track) => track.kind === kind)
      .flatMap(({ skips, endS, isCut, ...track }) => {
        // Separate audio may be in later segments than its list says. Video that ends too early is noticed anyway.
        const left = isCut && kind === "audio" ? [...skips, { fromS: endS, toS: Infinity }] : skips;
        return left.map(({ fromS, toS }) => move({ startS: fromS, endS: toS }, track.originS));
      }),
    ...parts.flatMap(({ missing }) => missing[kind].map((range) => move(range, copiedS))),
  ];
  return { video: of("video"), audio: of("audio") };
}
