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

export type ProgramReader = ReturnType<typeof createProgramReader>;

const maxPrograms = 64;

/**
 * Creates a reader of program association and program map (ISO/IEC 13818-1 §2.4.4).
 * @param onProgram Gets the streams to read, how many others are left out, and the subtitles, first and whenever the program map changes.
 * @param onOther Gets the kind of each stream of other programs, whenever the map of one is there.
 */
export function createProgramReader(
  pids: PidTable,
  wanted: { kinds: readonly TrackKind[]; audio: AudioChoice },
  onProgram: (
    streams: readonly ChosenStream[],
    left: FoundTracks["left"],
    subtitles: readonly UnreadSubtitles[],
  ) => void,
  onOther: (kind: TrackKind) => void,
) {
  /** Of the maps, by PID. */
  const readers = new Map<number, PidReader>();
  const chosen = new ChosenProgram();
  /** The last map. */
  let latest = "";
  let hasMap = false;
  let videoPid: number | undefined;
  const unknownPids = new Set<number>();

  const onMap = (pid: number, section: Buffer): void => {
    const number = readProgramNumber(section);
    if (chosen.isKnown && !chosen.is(pid, number)) {
      for (const kind of kindsIn(readProgramMap(section) ?? [])) onOther(kind);
      return;
    }
    const content = section.toString("latin1");
    if (content === latest) return;
    const program = readProgramMap(section);
    if (!program) return;
    hasMap = true;
    videoPid = findVideo(program);
    const streams = chooseStreams(program, wanted.kinds, wanted.audio);
    if (streams.length === 0) return;
    chosen.set(pid, number);
    latest = content;
    for (const unknown of findUnknown(program)) unknownPids.add(unknown);
    onProgram(streams, countLeft(program, streams), listSubtitles(program));
  };
  const onAssociations = (section: Buffer): void => {
    const programs = readAssociations(section);
    if (!programs) return;
    chosen.associate(programs);
    for (const { pid } of programs) {
      const known = readers.get(pid);
      const read = pids.get(pid);
      // The PID may have had a stream of the program before, but not one of the program that goes on.
      const isTaken = read !== undefined && (read === known || chosen.isKnown);
      if (isTaken || pid === associationPid || (known === undefined && readers.size >= maxPrograms)) continue;
      const reader = known ?? createSectionReader((map) => onMap(pid, map));
      readers.set(pid, reader);
      pids.set(pid, reader);
    }
  };
  pids.set(associationPid, createSectionReader(onAssociations));
  return {
    /** Streams of which no map says what they are. */
    unknownPids,
    /** Of the first video stream that the latest map lists; undefined: it lists none. */
    get videoPid(): number | undefined {
      return videoPid;
    },
    /** A program map has been read, whatever streams it has. */
    get hasMap(): boolean {
      return hasMap;
    },
    /** Its map has been read since the last `reset`. */
    get isFound(): boolean {
      return chosen.isKnown;
    },
    /** Looks for a program again; the last one stays in use until another is found. */
    reset(): void {
      for (const [pid, reader] of readers) pids.delete(pid, reader);
      readers.clear();
      chosen.clear();
      latest = "";
    },
  };
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

  /** Takes the latest program association, which may not list it any more. */
  associate(programs: readonly Program[]): void {
    this.#associated = programs;
    if (!programs.some(({ pid, program }) => this.is(pid, program))) this.clear();
  }

  clear(): void {
    this.#chosen = null;
  }
}
