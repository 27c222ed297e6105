import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import type { Container } from "../../../remux/sniff.ts";
import { SkipError } from "../../../remux/timelines.ts";
import type { GrowingMatroska } from "../partial/growing-file.ts";
import { copyGrowing, type GrowingCopy } from "../partial/growing-matroska.ts";
import { writeAll } from "../parts/disk-writes.ts";
import type { SourceRole } from "../sources/plan.ts";
import { checkAbsent, type MediaChunk, type SourceStream } from "../sources/source-stream.ts";
import { type MergedFile, statedLabels } from "./merge.ts";
import type { RemuxedStream, RemuxOptions } from "./remux.ts";
import { WebmSegments } from "./webm-segments.ts";

/** The file of a stream: its own, or one of its init section and segments. */
export interface SavedStream extends MergedFile, GrowingMatroska {
  container: SourceStream["container"];
  /** What its segments have; `null`: it is as published. */
  segments: WebmSegments | null;
  /** Resolves once all of it is there. */
  complete(): Promise<unknown>;
}

/** Opens what `opened` closes. @throws ServiceError `upstream_invalid` if its segments are in no known container; the file system's own errors */
export async function openSaved(
  stream: RemuxedStream,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<SavedStream> {
  const { name, role, label, container, path, growing, complete } = stream;
  if (path !== null) {
    const whole = { path, isComplete: () => true, grow: async () => {} };
    return { role, label, container, segments: null, ...whole, ...growing, complete: async () => complete };
  }
  if (container === null) {
    throw new ServiceError("upstream_invalid", `the ${name} segments have no supported container`);
  }
  const file = opened.use(await open(join(folder, `${name}.whole`), "w"));
  return new SegmentFile(stream, container, join(folder, `${name}.whole`), file);
}

interface CopyOptions extends Pick<RemuxOptions, "audioOnly" | "additions" | "target" | "signal"> {
  journal: StreamJournal;
}

/** Copies the media of WebM files while they grow; nothing else can come between these. Resolves with `null` as `copyGrowing` does. @throws as that */
export async function copySaved(files: readonly SavedStream[], options: CopyOptions): Promise<GrowingCopy | null> {
  const { audioOnly, additions, ...copy } = options;
  const hasSeparate = files.some(({ role }) => role === "audio");
  const kindsOf = (role: SourceRole): TrackKind[] => {
    if (role !== "main") return ["audio"];
    const video: TrackKind[] = audioOnly ? [] : ["video"];
    return hasSeparate ? video : [...video, "audio"];
  };
  const sources = files.map((file) => ({ file, kinds: kindsOf(file.role) }));
  const labelsOf = (audioTracks: number) => statedLabels(audioTracks, files);
  const roomBytes = additions.saidBytes() + titleBytes;
  return copyGrowing(sources, { ...copy, labelsOf, roomBytes });
}

/** Room for a title of 1,000 characters, and what is between the elements. */
const titleBytes = 8 << 10;

/** The segments of a stream in one file, which grows as they are needed. */
class SegmentFile implements SavedStream {
  readonly role: SavedStream["role"];
  readonly label: SavedStream["label"];
  readonly container: Container;
  readonly path: string;
  readonly segments: WebmSegments;
  readonly #chunks: SourceStream["chunks"];
  readonly #file: FileHandle;
  #bytes = 0;
  #hasEnded = false;
  #hasSkipped = false;
  #timeline: number | undefined;

  constructor({ name, role, label, chunks }: RemuxedStream, container: Container, path: string, file: FileHandle) {
    this.role = role;
    this.label = label;
    this.container = container;
    this.path = path;
    this.segments = new WebmSegments(name);
    this.#chunks = chunks;
    this.#file = file;
  }

  isComplete(): boolean {
    return this.#hasEnded;
  }

  complete(): Promise<void> {
    return this.grow(Infinity);
  }

  async grow(bytes: number): Promise<void> {
    while (!this.#hasEnded && this.#bytes < bytes) {
      const next = await this.#chunks.next();
      if (next.done === true) this.#hasEnded = true;
      else if (!("error" in next.value)) await this.#add(next.value);
      else checkAbsent(next.value, next.value.computed.periodEndS - next.value.durationS);
    }
  }

  async #add({ media, timing }: MediaChunk): Promise<void> {
    const isBytes = media instanceof Uint8Array;
    const isWebm = this.container === "webm";
    if (!isBytes && media.within !== undefined) throw new SkipError("the file has holes");
    if (timing.timeline !== (this.#timeline ??= timing.timeline)) {
      const rule = `a ${this.container} stream of several Periods or discontinuities cannot be joined`;
      throw new ServiceError("format_unavailable", rule);
    }
    this.#hasSkipped ||= timing.skippedS !== undefined;
    if (this.#hasSkipped && (!isWebm || this.segments.hasIndex || !isBytes)) {
      throw new SkipError("the segments are joined as they are");
    }
    if (isBytes && isWebm) this.segments.add(media, timing);
    for await (const part of isBytes ? [media] : createReadStream(media.path)) {
      await writeAll(this.#file, [part as Uint8Array], this.#bytes);
      this.#bytes += (part as Uint8Array).length;
    }
  }
}
