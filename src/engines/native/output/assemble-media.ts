import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FileWarning } from "../../../model/file-warnings.ts";
import type { FileType } from "../../../parsers/media-type.ts";
import type { MediaInfo } from "../../engine.ts";
import { isIndexedMp4 } from "../../../remux/mp4/read/file-boxes.ts";
import { hidesVideo } from "../inspect/unread-kind.ts";
import { embedInMp4 } from "../../../remux/mp4/embed.ts";
import { embedInAudio } from "../../../remux/audio-files/embed.ts";
import { sniffFile } from "../../../remux/sniff.ts";
import { type EndOfMp4, type GrowingFile, GrowthError } from "../partial/growing-file.ts";
import { type FileSource, isLiveSource, type Plan } from "../sources/plan.ts";
import { positionFrom } from "../texts/place-cues.ts";
import { FileAnnouncement, startsWithVideo } from "../partial/announce-file.ts";
import type { FetchEnd } from "../partial/index-first.ts";
import { waitForHead } from "../partial/growing-matroska.ts";
import { type Assembled, type AssembleOptions, assembleStreams, canCopy } from "./assemble-streams.ts";
import { checkEncrypted } from "./check-merged.ts";
import { addToMatroska } from "./copy-matroska.ts";
import { hasAllPackets } from "./count-packets.ts";
import { chooseInFile } from "./merge.ts";

/**
 * Fetches the plan's sources and makes one file of them in `folder`. MPEG-TS, MP4 with its index in front
 * and packed audio are remuxed while they arrive; tracks of other containers are merged afterwards.
 *
 * @throws ServiceError of `fetcher`, `inspect`, `remux` and `mergeFiles`
 */
export async function assembleMedia(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  const { ranges, journal } = options;
  // A live stream cannot be read a second time.
  const mayGrow = ranges.length === 0 && !plan.sources.some(isLiveSource);
  try {
    return await assembleOnce(plan, options, mayGrow);
  } catch (error) {
    if (!(error instanceof GrowthError)) throw error;
    // A complete file can be read otherwise, and tells what is wrong with it.
    await error.complete;
    journal.break();
    return await assembleOnce(plan, options, false);
  }
}

async function assembleOnce(plan: Plan, options: AssembleOptions, mayGrow: boolean): Promise<Assembled> {
  // An earlier run may have made them of other sources.
  const wholes = ["main", "audio", ...plan.sources.map(({ name }) => name)].map((name) => `${name}.whole`);
  const names = ["result", "merged", "embedded", "audio-file", "cut", ...wholes];
  for (const name of names) await rm(join(options.folder, name), { force: true });
  return (await keepPublished(plan, options, mayGrow)) ?? assembleStreams(plan, options, mayGrow);
}

/** Keeps the file of a plan as it is, but for additions; `null` if it must become another one. */
async function keepPublished(
  { isPassthrough, sources }: Plan,
  options: AssembleOptions,
  mayGrow: boolean,
): Promise<Assembled | null> {
  const [main] = sources;
  if (!isPassthrough || main.kind !== "file" || main.part !== null) return null;
  const { fetcher, ranges, audioOnly, audioChoice, inspect, withTimeLimit } = options;
  const endOfVideo = Promise.withResolvers<EndOfMp4>();
  const file = fetcher.fetchFile(main, createAnnouncement(main, options, endOfVideo.resolve));
  if (audioOnly && mayGrow) {
    if ((await canGrow(file, options)) && startsWithVideo(file.path)) return null;
    const found = await Promise.race([endOfVideo.promise, file.complete]);
    if ("index" in found) {
      file.end = found;
      return null;
    }
  }
  const { path } = await file.complete;
  if (ranges.length > 0 && !isIndexedMp4(path)) return null;
  if (audioOnly && !isAudio(await inspect(path), main)) return null;
  // It keeps all its tracks, in whatever languages.
  if (audioChoice.isAsked) await withTimeLimit("read", [path], () => chooseInFile(path, audioChoice));
  const isOtherFirst = audioChoice.isOtherFirst && ranges.length === 0;
  const warnings = [...(isOtherFirst ? [otherFirst] : []), ...checkEncrypted(path)];
  if (options.embed !== "all" || ranges.length > 0) return { path, written: null, warnings };
  const embedded = await embed(path, options);
  if (embedded === null) warnings.push(notEmbedded);
  return { path: embedded ?? path, copiedFrom: path, written: null, warnings };
}

/**
 * Whether a file can be read while it is fetched: resolves once it is there which tracks it has. Rejects as the fetch does.
 *
 * @throws GrowthError
 */
async function canGrow(file: GrowingFile, { additions }: AssembleOptions): Promise<boolean> {
  const matroska = await file.openMatroska();
  if (matroska === null) return (await file.openMp4()) !== null;
  if (!canCopy(additions)) return false;
  await waitForHead(matroska);
  return true;
}

/** Returns what announces the file if it is sent as it comes; undefined if only a part of it becomes the result. */
function createAnnouncement(
  source: FileSource,
  options: AssembleOptions,
  onVideo: (end: EndOfMp4) => void,
): FileAnnouncement | undefined {
  const { ranges, audioOnly, journal, fetcher, maxBytes } = options;
  if (ranges.length > 0) return undefined;
  const isWanted = (type: FileType) => !audioOnly || isAudio(type, source);
  const fetchEnd: FetchEnd = async (span) => {
    // It is fetched twice.
    const bytes = span.end + span.end - span.start;
    return bytes > maxBytes ? null : fetcher.fetchEnd(source, span);
  };
  return new FileAnnouncement(journal, { isWanted, fetchEnd, onVideo });
}

const otherFirst: FileWarning = {
  code: "tracks_left",
  message:
    "the file is as published, and plays another audio track first than was asked for; ranges from 0 to the end make a file of those that were",
};

const notEmbedded: FileWarning = {
  code: "not_embedded",
  message: "the file is as published, without tags and chapters: its container or its index cannot have them",
};

/** Returns the path of a copy with additions; `null` if its container cannot have them. */
async function embed(
  path: string,
  { folder, additions, inspect, withTimeLimit, signal }: AssembleOptions,
): Promise<string | null> {
  await additions.ready();
  const added = await additions.get({ ...positionFrom(0), isPublished: true });
  const target = join(folder, "embedded");
  const container = sniffFile(path);
  const durationS = container === "webm" ? null : (await inspect(path)).duration;
  const write = async () => {
    if (container === "mp4") return embedInMp4(path, target, added, { durationS, signal });
    if (container === "webm") return addToMatroska(path, target, added, signal);
    return embedInAudio(path, target, added, { durationS: durationS ?? Infinity, signal });
  };
  const isEmbedded = await withTimeLimit("merge", [path], async () => (await write()) && hasAllPackets(target, path));
  return isEmbedded ? target : null;
}

const isAudio = ({ ext, mime_type }: Pick<MediaInfo, "ext" | "mime_type">, { format }: FileSource): boolean =>
  mime_type.startsWith("audio/") || (format.vcodec === "none" && hidesVideo(ext));
