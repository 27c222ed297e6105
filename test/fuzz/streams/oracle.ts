import type { Frame, Frames } from "./frames.ts";

/** Frames that come one after the other in the right stream. */
export interface Run {
  fromS: number;
  toS: number;
}

/** Of rounded times. */
const slackS = { video: 0.003, audio: 0.025 } as const;
type Kind = keyof typeof slackS;

/**
 * Returns what is wrong with frames that were made of `source`; `null`: nothing. They are right if they are those of the
 * source, at its times; or, if `runs` of the source are all that was listed, these one after the other. Audio may have
 * `slackSamples` more or less.
 */
export function findFault(
  made: Frames,
  source: Frames,
  kinds: readonly Kind[],
  runs: readonly Run[] | null,
  slackSamples = 0,
): string | null {
  const whole = [{ fromS: -Infinity, toS: Infinity }];
  const fault = compare(made, source, kinds, whole) ?? wrongSamples(made, source, kinds, slackSamples);
  if (fault === null || runs === null) return fault;
  return compare(made, source, kinds, runs);
}

function compare(made: Frames, source: Frames, kinds: readonly Kind[], runs: readonly Run[]): string | null {
  const shifts = runs.map((): number | undefined => undefined);
  for (const kind of kinds) {
    const frames = made[kind];
    let at = 0;
    let endS: number | null = null;
    for (const [index, run] of runs.entries()) {
      const { all, needed } = inRun(source[kind], run, kind);
      // What belongs to a run may begin and end a little elsewhere in audio.
      const first = frames[at];
      const start = all.findIndex(({ hash }) => hash === first?.hash);
      if (needed.length > 0 && (start < 0 || start > all.indexOf(needed[0]!)))
        return `${kind}: not what comes at ${at} (run ${index})`;
      if (start < 0) continue;
      let own = start;
      while (at < frames.length && own < all.length && frames[at]!.hash === all[own]!.hash) {
        const { atS, durationS } = frames[at]!;
        const shift = atS - all[own]!.atS;
        shifts[index] ??= shift;
        if (Math.abs(shift - shifts[index]) > slackS[kind])
          return `${kind}: frame ${at} is ${(shift - shifts[index]).toFixed(3)} s off`;
        if (endS !== null && own === start && Math.abs(atS - endS) > 2 * slackS[kind] + durationS + joinS)
          return `${kind}: ${(atS - endS).toFixed(3)} s before frame ${at}`;
        endS = atS + durationS;
        at += 1;
        own += 1;
      }
      const last = needed.at(-1);
      if (last !== undefined && own <= all.indexOf(last))
        return `${kind}: frame ${at} is not ${own} of run ${index}; ${frames.length} of ${source[kind].length} frames`;
    }
    if (at < frames.length) return `${kind}: ${frames.length - at} frames too many`;
  }
  return null;
}

/** A shorter break is no gap: so far from each other tracks begin and end a piece. */
const joinS = 0.15;
/** Pieces are cut between pictures: audio belongs to the one before or after. */
const cutS = 0.15;

function inRun(frames: readonly Frame[], { fromS, toS }: Run, kind: Kind) {
  const slack = kind === "audio" ? cutS : 0.005;
  const startS = frames[0]?.atS ?? 0;
  const between = (from: number, to: number) => frames.filter(({ atS }) => atS - startS >= from && atS - startS < to);
  if (kind === "video") {
    const all = between(fromS - slack, toS - slack);
    return { all, needed: all };
  }
  return { all: between(fromS - slack, toS + slack), needed: between(fromS + slack, toS - slack) };
}

function wrongSamples(made: Frames, source: Frames, kinds: readonly Kind[], slack: number): string | null {
  if (!kinds.includes("audio") || Math.abs(made.samples - source.samples) <= slack) return null;
  return `audio: ${made.samples} samples instead of ${source.samples}`;
}
