import type { PidTable } from "./pids.ts";
import { createSectionReader } from "./sections.ts";
import { type ChosenStream, chooseStreams, type Kind } from "./streams.ts";
import { readAssociations, readProgramMap } from "./tables.ts";

export interface ProgramReaderOptions {
  pids: PidTable;
  kinds: readonly Kind[];
  /** The program's streams are these from now on. */
  onProgram(streams: readonly ChosenStream[]): void;
}

/** Reads the tables that tell where a stream's media are (ISO/IEC 13818-1 §2.4.4). */
export interface ProgramReader {
  /** A program map was there, of whatever streams. */
  readonly hasMap: boolean;
  /** Looks for a program anew; what was found stays until then. */
  reset(): void;
}

const associationPid = 0;
const maxPrograms = 64;

export function createProgramReader({
  pids,
  kinds,
  onProgram,
}: ProgramReaderOptions): ProgramReader {
  let mapPids = new Set<number>();
  /** PID of the map of the program that is read. */
  let chosenPid: number | null = null;
  /** The map as it was last. */
  let latest = "";
  let hasMap = false;

  const onMap = (pid: number, section: Buffer): void => {
    if (chosenPid !== null && chosenPid !== pid) return;
    const content = section.toString("latin1");
    if (content === latest) return;
    const program = readProgramMap(section);
    if (!program) return;
    hasMap = true;
    const streams = chooseStreams(program, kinds);
    if (streams.length === 0) return;
    chosenPid = pid;
    latest = content;
    onProgram(streams);
  };
  const onAssociations = (section: Buffer): void => {
    const associated = readAssociations(section);
    if (!associated) return;
    if (chosenPid !== null && !associated.includes(chosenPid)) chosenPid = null;
    for (const pid of associated) {
      if (pids.has(pid) || mapPids.size >= maxPrograms) continue;
      mapPids.add(pid);
      pids.set(
        pid,
        readSections((map) => onMap(pid, map)),
      );
    }
  };
  pids.set(associationPid, readSections(onAssociations));
  return {
    get hasMap() {
      return hasMap;
    },
    reset() {
      for (const pid of mapPids) pids.delete(pid);
      mapPids = new Set();
      chosenPid = null;
      latest = "";
    },
  };
}

function readSections(onSection: (section: Buffer) => void) {
  const { read, drop } = createSectionReader(onSection);
  return { read, onLoss: drop };
}
