import { join } from "node:path";
import { noAdditions } from "../../../remux/additions.ts";
import { extractAudio } from "../../../remux/audio-files/extract.ts";
import type { Plan } from "../sources/plan.ts";
import { positionFrom } from "../texts/place-cues.ts";
import { type Assembled, assembleMedia, type AssembleOptions } from "./assemble-media.ts";
import { assembleRanges } from "./assemble-ranges.ts";
import type { PendingAdditions } from "./remux.ts";

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
  const extract = () => extractAudio(path, target, added, { durationS: duration ?? Infinity, isCut, signal });
  const isExtracted = await withTimeLimit("merge", [path], extract);
  return isExtracted ? { ...assembled, path: target, copiedFrom, presentedS: duration } : assembled;
}
