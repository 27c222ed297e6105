import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../../errors.ts";
import { fetchFile, type Lane, type LaneContext, openLane, readFragments } from "./lane.ts";
import { mergeFiles } from "./merge.ts";
import { durationOf, type Plan } from "./plan.ts";
import { isRemuxable, remux } from "./remux.ts";

/** A complete file in the job's folder. */
export interface Made {
  path: string;
  /** Hexadecimal; `null`: not computed on the way. */
  sha256: string | null;
}

/**
 * Fetches what `plan` names and makes one file of it. MPEG-TS,
 * fragmented MP4 and packed audio are remuxed as they come; the tracks of other containers are merged
 * once all is there.
 */
export async function assemble(plan: Plan, context: LaneContext): Promise<Made> {
  const { job, signal } = context;
  if (plan.isReady && plan.main.kind === "file") {
    return fetchFile(plan.main, { ...context, hash: true });
  }
  const target = join(job.folder, "result");
  await rm(target, { force: true });
  const { audio: sound, isAudioOptional } = plan;
  const openAudio = sound && (() => openLane(sound, context));
  const [main, audio] = await Promise.all([
    openLane(plan.main, context),
    isAudioOptional ? null : (openAudio?.() ?? null),
  ]);
  if (isRemuxable(main) && (audio === null || isRemuxable(audio))) {
    const expectedS = durationOf(plan.main);
    const { audioOnly, maxBytes } = job;
    await remux({ main, audio, openAudio, audioOnly, target, expectedS, maxBytes, signal });
    return { path: target, sha256: null };
  }
  const paths = [await spool(main, context)];
  const apart = audio ?? (await openAudio?.());
  if (apart) paths.push(await spool(apart, context));
  return { path: await merge(paths, target, plan, context), sha256: null };
}

/** What comes out as MP4 has its index put in front by `remux`. */
async function merge(
  [main = "", audio]: readonly string[],
  target: string,
  { isAudioOptional }: Plan,
  { job, signal }: LaneContext,
): Promise<string> {
  const merged = join(job.folder, "merged");
  const { audioOnly, maxBytes } = job;
  const options = {
    main,
    audio: audio ?? null,
    isAudioOptional,
    audioOnly,
    target: merged,
    signal,
  };
  if ((await mergeFiles(options)) === "webm") return merged;
  const lane = {
    name: "main",
    container: "mp4",
    path: merged,
    chunks: readFragments(merged),
  } as const;
  await remux({
    main: lane,
    audio: null,
    openAudio: null,
    audioOnly,
    target,
    expectedS: null,
    maxBytes,
    signal,
  });
  return target;
}

/** Writes a lane to a file of its own, if it is none: an init section and its segments make one. */
async function spool(lane: Lane, { job, signal }: LaneContext): Promise<string> {
  const { name, container, chunks } = lane;
  if (lane.path !== null) return lane.path;
  if (container === null) {
    throw new ServiceError(
      "upstream_invalid",
      `the segments of the ${name} medium are of no known kind`,
    );
  }
  const path = join(job.folder, `${name}.whole`);
  async function* bytes() {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      yield next.value.bytes;
    }
  }
  await pipeline(bytes, createWriteStream(path), { signal });
  return path;
}
