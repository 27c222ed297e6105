import { readFileSync } from "node:fs";
import { ServiceError } from "../../src/model/errors.ts";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeSubRip, writeWebVtt } from "../../src/subtitles/write.ts";

/** Reads a file of subtitles and writes them again, as a download does; prints the outcome and the peak memory, MiB. */
function outcome(path: string): string {
  try {
    const { cues } = readSubtitles(readFileSync(path));
    let length = 0;
    for (const piece of [writeWebVtt(cues), writeSubRip(cues)].flatMap((pieces) => pieces.toArray()))
      length += piece.length;
    return `${cues.length} cues, ${length} characters`;
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

const read = outcome(process.argv[2]!);
// VmHWM is this program's own. resourceUsage().maxRSS counts what the parent held when it started this process, too.
const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
console.log(JSON.stringify({ read, peakMiB: Number(peakKiB) / 1024 }));
