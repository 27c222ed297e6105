import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../../errors.ts";
import {
  fetchFile,
  type SourceStream,
  type SourceStreamContext,
  openSourceStream,
  readFileChunks,
} from "./source-stream.ts";
import type { MediaInfo } from "./inspect.ts";
import { mergeFiles } from "./merge.ts";
import { sourceDuration, type Plan } from "./plan.ts";
import { isRemuxable, remux } from "./remux.ts";

/** Reads a file back. */
export type Inspect = (path: string) => Promise<MediaInfo>;

export interface AssemblyContext extends SourceStreamContext {
  inspect: Inspect;
}

/**
 * Fetches what `plan` names and makes one file of it in the job's folder; gives its path. MPEG-TS,
 * fragmented MP4 and packed audio are remuxed as they come; the tracks of other containers are merged
 * once all is there.
 */
export async function assemble(plan: Plan, context: AssemblyContext): Promise<string> {
  const { job, signal, inspect } = context;
  // Of an earlier run, which may have made them of something else.
  for (const name of ["result", "merged", "main.whole", "audio.whole"]) {
    await rm(join(job.folder, name), { force: true });
  }
  if (plan.isPassthrough && plan.main.kind === "file") {
    const { path } = await fetchFile(plan.main, context);
    if (!job.audioOnly || isAudioFile(await inspect(path))) return path;
  }
  const target = join(job.folder, "result");
  const { audio: sound, isAudioOptional } = plan;
  const openAudio = sound && (() => openSourceStream(sound, context));
  const [main, audio] = await Promise.all([
    openSourceStream(plan.main, context),
    isAudioOptional ? null : (openAudio?.() ?? null),
  ]);
  if (isRemuxable(main) && (audio === null || isRemuxable(audio))) {
    const expectedS = sourceDuration(plan.main);
    const { audioOnly, maxBytes } = job;
    await remux({ main, audio, openAudio, audioOnly, target, expectedS, maxBytes, signal });
    return target;
  }
  const paths = [await spool(main, context)];
  const apart = audio ?? (await openAudio?.());
  if (apart) paths.push(await spool(apart, context));
  return merge(paths, target, plan, context);
}

const isAudioFile = ({ mime_type }: MediaInfo): boolean => mime_type.startsWith("audio/");

/** What comes out as MP4 has its index put in front by `remux`. */
async function merge(
  [main = "", audio]: readonly string[],
  target: string,
  { isAudioOptional }: Plan,
  { job, signal }: SourceStreamContext,
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
  const stream = {
    name: "main",
    container: "mp4",
    path: merged,
    chunks: readFileChunks(merged),
  } as const;
  await remux({
    main: stream,
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
async function spool(stream: SourceStream, { job, signal }: SourceStreamContext): Promise<string> {
  const { name, container, chunks } = stream;
  if (stream.path !== null) return stream.path;
  if (container === null) {
    throw new ServiceError(
      "upstream_invalid",
      `the segments of the ${name} medium are of no known kind`,
    );
  }
  const path = join(job.folder, `${name}.whole`);
  async function* bytes() {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      const { media } = next.value;
      // A copy: the bytes are valid only until the next chunk is requested.
      if (media instanceof Uint8Array) yield Uint8Array.from(media);
      else yield* createReadStream(media.path);
    }
  }
  await pipeline(bytes, createWriteStream(path), { signal });
  return path;
}
