import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../../model/errors.ts";
import { noAdditions } from "../../../remux/additions.ts";
import { SkipError } from "../../../remux/discontinuity.ts";
import { cutMp4 } from "../../../remux/mp4/cut.ts";
import type { Plan } from "../sources/plan.ts";
import { hasEnd, hasSelection, selectAll } from "../sources/select-segments.ts";
import type { MediaPosition } from "../texts/place-cues.ts";
import { type Assembled, assembleMedia, type AssembleOptions } from "./assemble-media.ts";
import { chooseInFile } from "./merge.ts";
import type { PendingAdditions, Written } from "./remux.ts";

/**
 * Makes a file of the media that the ranges need, and cuts it. Fetches all media if those that were selected are too few,
 * or their times do not tell where they belong.
 *
 * @throws ServiceError of `assembleMedia` and `cutMp4`
 */
export async function assembleRanges(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  if (hasSelection(plan)) {
    try {
      const cut = await tryCut(plan, options);
      if (cut !== null) return cut;
    } catch (error) {
      if (!(error instanceof SkipError)) throw error;
    }
  }
  const cut = await tryCut(selectAll(plan), options);
  if (cut === null)
    throw new ServiceError("internal", "all media are too few for a part of them", { retryable: false });
  return cut;
}

/** Returns `null` if the media that were fetched do not have all that the ranges need. */
async function tryCut(plan: Plan, options: AssembleOptions): Promise<Assembled | null> {
  const { folder, ranges, maxBytes, onWritten, withTimeLimit, additions, signal } = options;
  let position: MediaPosition = { originS: 0, offsetOf: () => 0 };
  const later: PendingAdditions = {
    ...additions,
    bytes: () => 0,
    async get(media) {
      position = media;
      return noAdditions;
    },
  };
  const whole = (await fetchNeeded(plan, options)) ?? (await assembleMedia(plan, { ...options, additions: later }));
  await additions.ready();
  const target = join(folder, "cut");
  const cut = await withTimeLimit("merge", [whole.path], () =>
    cutMp4({
      source: whole.path,
      target,
      ranges,
      ...missingOf(plan, whole.written),
      maxBytes,
      additions: (shown) => additions.get({ ...position, cut: shown }),
      onWritten,
      signal,
    }),
  );
  if (cut === null) return null;
  // A file as published is among the parts.
  for (const name of ["result", "part"]) await rm(join(folder, name), { force: true });
  // The end of each part is one of its edit list.
  const warnings = whole.warnings.filter(({ code }) => code !== "end_padding");
  return { ...whole, path: target, warnings, cut };
}

/** Returns a file with what the ranges need of a published MP4; `null` if that cannot be fetched apart from the rest. */
async function fetchNeeded({ main, isPassthrough }: Plan, options: AssembleOptions): Promise<Assembled | null> {
  const { fetcher, folder, ranges, audioOnly, audioChoice, withTimeLimit } = options;
  if (!isPassthrough || main.kind !== "file" || (audioOnly && main.format.vcodec !== "none")) return null;
  const path = join(folder, "part");
  if (!(await fetcher.fetchMp4Part(main, ranges, path))) return null;
  if (audioChoice.isAsked) await withTimeLimit("read", [path], () => chooseInFile(path, audioChoice));
  return { path, written: null, warnings: [] };
}

/** Returns what a file lacks because segments were not selected. */
function missingOf(plan: Plan, written: Written | null) {
  const tracks = written?.tracks ?? [];
  const originS = written?.originS ?? 0;
  const of = (kind: "video" | "audio") =>
    tracks
      .filter((track) => track.kind === kind)
      .flatMap(({ skips }) => skips.map(({ fromS, toS }) => ({ startS: fromS - originS, endS: toS - originS })));
  return { missing: { video: of("video"), audio: of("audio") }, isWhole: hasEnd(plan) };
}
