import { closeSync, openSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { diskError } from "../../../files/disk-error.ts";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { unlessUnreadable } from "../../../model/errors.ts";
import { fileType } from "../../../parsers/media-type.ts";
import { type Additions, noAdditions } from "../../../remux/additions.ts";
import { describe } from "../../../remux/matroska/added-elements.ts";
import type { ChosenTracks } from "../../../remux/matroska/blocks.ts";
import { type CopyTarget, copyTracks, isCopiable } from "../../../remux/matroska/copy.ts";
import { type Element, ids, readElement } from "../../../remux/matroska/elements.ts";
import { type MatroskaTrack, readHeader, webmCodecIds } from "../../../remux/matroska/tracks.ts";
import type { MatroskaWriter } from "../../../remux/matroska/writer.ts";
import { type NumberSource, numbersIn, numbersInFile } from "../../../remux/mp4/read/number-source.ts";
import { readRange } from "../../../remux/mp4/read/file-boxes.ts";
import { openFile } from "../../../remux/open-file.ts";
import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";
import type { AudioLabel } from "../../../remux/track-details.ts";
import type { GrowingMatroska } from "./growing-file.ts";

/** A file that grows, and the kinds of its tracks that are wanted. */
interface GrowingSource {
  file: GrowingMatroska;
  kinds: readonly TrackKind[];
}

interface GrowingCopyOptions {
  target: string;
  /** Gets the new file while it is written. */
  journal: StreamJournal;
  /** Returns what is said of this many audio tracks, in their order. */
  labelsOf: (audioTracks: number) => readonly AudioLabel[];
  /** Room before the media for what is said of them later. */
  roomBytes: number;
  signal: AbortSignal;
}

/**
 * Copies tracks of files that grow into a WebM file, which can be sent meanwhile. Resolves once all are copied; with `null` if that cannot be
 * done before the files are complete: one has several tracks of a kind, subtitles, or what WebM or a plain copy cannot have, or is damaged.
 *
 * @throws what `grow` of a file does; ServiceError `disk_full`, `unavailable`; `signal.reason`
 */
export async function copyGrowing(
  sources: readonly GrowingSource[],
  { target, journal, labelsOf, roomBytes, signal }: GrowingCopyOptions,
): Promise<GrowingCopy | null> {
  using opened = new DisposableStack();
  const growing = new Map<ChosenTracks, GrowingMatroska>();
  for (const source of sources) {
    const found = await openTracks(source, opened.use(openFile(source.file.path)).fd);
    if (found === null) return null;
    if (found.tracks.length > 0) growing.set(found, source.file);
  }
  const files = [...growing.keys()];
  const tracks = files.flatMap((file) => file.tracks);
  if (tracks.length === 0 || !isCopiable(files)) return null;
  const copy = new GrowingCopy(target, journal, files, opened);
  try {
    const labels = labelsOf(tracks.filter(({ kind }) => kind === "audio").length);
    const isCopied = await copy.run({ labels, roomBytes }, signal, (file, bytes) => growing.get(file)!.grow(bytes));
    if (isCopied) return copy;
  } catch (error) {
    using _ = copy;
    throw diskError(`write ${basename(target)}`, error);
  }
  copy.discard();
  return null;
}

/** A WebM file that has the media of files that grew. */
export class GrowingCopy implements Disposable {
  readonly #target: string;
  readonly #journal: StreamJournal;
  readonly #files: readonly ChosenTracks[];
  readonly #fd: number;
  readonly #opened: DisposableStack;
  #writer: MatroskaWriter | undefined;

  /** Takes over what is in `opened`, which has the files. */
  constructor(target: string, journal: StreamJournal, files: readonly ChosenTracks[], opened: DisposableStack) {
    const fd = openSync(target, "w");
    opened.defer(() => closeSync(fd));
    this.#target = target;
    this.#journal = journal;
    this.#files = files;
    this.#fd = fd;
    this.#opened = opened.move();
  }

  /** Copies the media; `grow` gets more of a file. Resolves with false if a file is damaged. @throws what `grow` does; the file system's own errors */
  async run(
    target: Pick<CopyTarget, "labels" | "roomBytes">,
    signal: AbortSignal,
    grow: (file: ChosenTracks, bytes: number) => Promise<void>,
  ): Promise<boolean> {
    const fixed = { fd: this.#fd, docType: "webm", additions: noAdditions } as const;
    const steps = copyTracks(this.#files, {
      ...target,
      ...fixed,
      onCluster: (...cluster) => this.#publish(...cluster),
    });
    for (;;) {
      const step = unlessUnreadable(() => steps.next());
      if (step === undefined) return false;
      if (step.done === true) {
        this.#writer = step.value;
        this.#writer.flush();
        return true;
      }
      signal.throwIfAborted();
      if (step.value !== undefined) await grow(step.value.file, step.value.bytes);
      // Lets the event loop handle messages and sockets.
      await nextTurn();
    }
  }

  #publish({ start, end }: ByteSpan, writer: MatroskaWriter): void {
    const isFirst = !this.#journal.isOpen;
    const type = fileType(
      "webm",
      this.#files.some(({ tracks }) => tracks.some(({ kind }) => kind === "video")),
    );
    if (isFirst) this.#journal.open({ ...type, file: basename(this.#target) }, false);
    const head = isFirst ? writer.streamHead : new Uint8Array();
    this.#journal.add([{ head, offset: start, bytes: end - start }]);
  }

  /** Completes the file, unless these tracks are others, or subtitles are added. Returns whether it has done so. */
  finish(sources: readonly ChosenTracks[], additions: Additions): boolean {
    if (!isSame(this.#files, sources) || additions.subtitles.length > 0) return false;
    this.#writer!.finish(describe(additions, "webm"));
    return true;
  }

  /** Removes the file, of which no more can be sent. */
  discard(): void {
    using _ = this.#opened;
    this.#journal.break();
    rmSync(this.#target, { force: true });
  }

  [Symbol.dispose](): void {
    this.#opened.dispose();
  }
}

const numbersOf = ({ tracks }: ChosenTracks): string => tracks.map(({ number }) => number).join();

function isSame(files: readonly ChosenTracks[], others: readonly ChosenTracks[]): boolean {
  return files.map(numbersOf).join(";") === others.map(numbersOf).join(";");
}

/** What a file may have before its media, bytes. */
const maxHeadBytes = 4 << 20;

/** Resolves with the wanted tracks of an open file once its header is there; `null` if it is not plain which those are. @throws as its `grow` */
async function openTracks(source: GrowingSource, fd: number): Promise<ChosenTracks | null> {
  const head = await untilHead(source.file, fd);
  return head === undefined ? null : chooseTracks(source, fd, head);
}

/** Resolves once it is known what comes before the media of a file, and is there, or that it cannot be read meanwhile. @throws as its `grow` */
export async function waitForHead(file: GrowingMatroska): Promise<void> {
  using opened = openFile(file.path);
  await untilHead(file, opened.fd);
}

/** Resolves with what comes before the media of an open file once that is there; undefined if it is too long, or does not come. */
async function untilHead(file: GrowingMatroska, fd: number): Promise<Head | undefined> {
  for (;;) {
    const isLast = file.isComplete();
    const numbers = numbersInFile(fd);
    const head = findHead(numbers);
    if (head !== undefined || isLast || numbers.size > maxHeadBytes) return head;
    await file.grow(numbers.size + 1);
  }
}

interface Head {
  /** Its end is Infinity if its size is unknown. */
  segment: Element;
  /** Where the first Cluster is. */
  end: number;
}

/** Returns what comes before the first Cluster, once all of it is there. */
function findHead(source: NumberSource): Head | undefined {
  const ebml = readElement(source, 0, source.size);
  const segment = ebml && readElement(source, ebml.end, source.size);
  if (ebml?.id !== ids.ebml || segment?.id !== ids.segment) return undefined;
  for (let end = segment.body; ;) {
    const element = readElement(source, end, source.size);
    if (element?.id === ids.cluster) return { segment, end };
    if (element === undefined || element.end > source.size) return undefined;
    end = element.end;
  }
}

function chooseTracks({ kinds, file }: GrowingSource, fd: number, { segment, end }: Head): ChosenTracks | null {
  const source = numbersIn(readRange(fd, { start: 0, end }));
  const header = unlessUnreadable(() => readHeader(source));
  if (header === undefined) return null;
  const of = (kind: TrackKind) => header.tracks.filter((track) => track.kind === kind);
  const isPlain = ({ kind, codecId, disabled }: MatroskaTrack) =>
    kind !== null && of(kind).length === 1 && disabled === null && webmCodecIds.has(codecId);
  if (!header.tracks.every(isPlain)) return null;
  return { fd, source, header: { ...header, segment }, tracks: kinds.flatMap(of), isComplete: () => file.isComplete() };
}
