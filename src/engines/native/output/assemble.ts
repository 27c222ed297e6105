import { join } from "node:path";
import { noAdditions } from "../../../remux/additions.ts";
import type { Plan } from "../sources/plan.ts";
import { type Assembled, assembleMedia, type AssembleOptions } from "./assemble-media.ts";
import { assembleRanges } from "./assemble-ranges.ts";
import { copyOpus } from "./copy-matroska.ts";

/**
 * Fetches the plan's sources and makes the file of them that is wanted, in `folder`.
 *
 * @throws ServiceError of `assembleMedia` and `assembleRanges`
 */
export async function assemble(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  const { ranges, isAudioFile } = options;
  if (ranges.length > 0) return assembleRanges(plan, options);
  const assembled = await assembleMedia(plan, options);
  const path = isAudioFile ? await toOgg(assembled.path, options) : null;
  return path === null ? assembled : { path, written: null, warnings: [] };
}

/** Returns the path of an Ogg file with the Opus of a WebM or Matroska file; `null` if it has anything else. */
async function toOgg(path: string, options: AssembleOptions): Promise<string | null> {
  const { folder, additions, withTimeLimit, signal } = options;
  await additions.ready();
  const target = join(folder, "audio.opus");
  const position = { originS: 0, offsetOf: () => undefined };
  const added = options.embed === "none" ? noAdditions : await additions.get(position);
  return (await withTimeLimit("merge", [path], () => copyOpus(path, target, added, signal))) ? target : null;
}
