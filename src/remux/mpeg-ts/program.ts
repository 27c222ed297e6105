import type { AudioChoice } from "../audio-choice.ts";
import type { FoundTracks, TrackKind, UnreadSubtitles } from "../samples.ts";
import { associationPid, type PidReader, type PidTable } from "./pids.ts";
import { createSectionReader, readAssociations, readProgramMap, readProgramNumber } from "./tables.ts";
import {
  type ChosenStream,
  chooseStreams,
  countLeft,
  findUnknown,
  findVideo,
  kindsIn,
  listSubtitles,
} from "./streams.ts";

const maxPrograms = 64;

export interface ProgramReaderOptions {
  kinds: readonly TrackKind[];
  audio: AudioChoice;
  /** Gets the streams to read, how many others are left out, and the subtitles, first and whenever the program map changes. */
  onProgram(streams: readonly ChosenStream[], left: FoundTracks["left"], subtitles: readonly UnreadSubtitles[]): void;
  /** Gets the kind of each stream of other programs, whenever the map of one is there. */
  onOther(kind: TrackKind): void;
}

/** Reads program association and program map (ISO/IEC 13818-1 §2.4.4). */
export class ProgramReader {
  /** Streams of which no map says what they are. */
  readonly unknownPids = new Set<number>();
  /** Of the first video stream that the latest map lists; undefined: it lists none. */
  videoPid: number | undefined;
  /** A program map has been read, whatever streams it has. */
  hasMap = false;
  readonly #pids: PidTable;
  readonly #options: ProgramReaderOptions;
  /** Of the maps, by PID. */
  readonly #readers = new Map<number, PidReader>();
  readonly #chosen = new ChosenProgram();
  /** The last map. */
  #latest = "";

  constructor(pids: PidTable, options: ProgramReaderOptions) {
    this.#pids = pids;
    this.#options = options;
    pids.set(
      associationPid,
      createSectionReader((section) => this.#readAssociations(section)),
    );
  }

  /** Its map has been read since the last `reset`. */
  get isFound(): boolean {
    return this.#chosen.isKnown;
  }

  /** Looks for a program again; the last one stays in use until another is found. */
  reset(): void {
    for (const [pid, reader] of this.#readers) this.#pids.delete(pid, reader);
    this.#readers.clear();
    this.#chosen.clear();
    this.#latest = "";
  }

  #readAssociations(section: Buffer): void {
    const programs = readAssociations(section);
    if (!programs) return;
    this.#chosen.associate(programs);
    for (const { pid } of programs) {
      const known = this.#readers.get(pid);
      const read = this.#pids.get(pid);
      // The PID may have had a stream of the program before, but not one of the program that continues.
      const isTaken = read !== undefined && (read === known || this.#chosen.isKnown);
      const isTooMany = known === undefined && this.#readers.size >= maxPrograms;
      if (isTaken || pid === associationPid || isTooMany) continue;
      const reader = known ?? createSectionReader((map) => this.#readMap(pid, map));
      this.#readers.set(pid, reader);
      this.#pids.set(pid, reader);
    }
  }

  #readMap(pid: number, section: Buffer): void {
    const { kinds, audio, onProgram, onOther } = this.#options;
    const number = readProgramNumber(section);
    if (this.#chosen.isKnown && !this.#chosen.is(pid, number)) {
      for (const kind of kindsIn(readProgramMap(section) ?? [])) onOther(kind);
      return;
    }
    const content = section.toString("latin1");
    if (content === this.#latest) return;
    const program = readProgramMap(section);
    if (!program) return;
    this.hasMap = true;
    this.videoPid = findVideo(program);
    const streams = chooseStreams(program, kinds, audio);
    if (streams.length === 0) return;
    this.#chosen.set(pid, number);
    this.#latest = content;
    for (const unknown of findUnknown(program)) this.unknownPids.add(unknown);
    onProgram(streams, countLeft(program, streams), listSubtitles(program));
  }
}

type Program = NonNullable<ReturnType<typeof readAssociations>>[number];

/** The program that is read, by the PID of its map, which several programs may share. */
class ChosenProgram {
  #chosen: Program | null = null;
  #associated: readonly Program[] = [];

  get isKnown(): boolean {
    return this.#chosen !== null;
  }

  /** Whether a map is its own. One that is alone on its PID may have another number than its association says. */
  is(pid: number, program: number): boolean {
    if (this.#chosen?.pid !== pid) return false;
    const isShared = this.#associated.filter((each) => each.pid === pid).length > 1;
    return !isShared || this.#chosen.program === program;
  }

  set(pid: number, program: number): void {
    this.#chosen = { pid, program };
  }

  /** Takes the latest program association, which may not list it. */
  associate(programs: readonly Program[]): void {
    this.#associated = programs;
    if (!programs.some(({ pid, program }) => this.is(pid, program))) this.clear();
  }

  clear(): void {
    this.#chosen = null;
  }
}
