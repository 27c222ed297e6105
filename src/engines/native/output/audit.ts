import type { Sample, SampleSink, TrackKind } from "../../../remux/samples.ts";

/** What the samples of a track were, as the demuxer wrote them. */
export interface TrackFacts {
  kind: TrackKind;
  samples: number;
  /** Start of the first sample and end of the last in presentation order, seconds. */
  startS: number;
  endS: number;
  /** Samples that should be decoded no later than the one before; of audio, over two samples earlier. */
  moved: number;
  /** Samples with the presentation time of another one nearby. */
  shared: number;
  /** Times without samples of more than a second, presentation time. */
  gaps: Gaps;
}

export interface Gaps {
  count: number;
  totalS: number;
  /** The first few. */
  first: { fromS: number; toS: number }[];
}

/** A sink that passes everything on, and counts. */
export interface AuditedSink extends SampleSink {
  /** Media of a track were left out. */
  onDrop(kind: TrackKind): void;
  /** Places at which media were left out, also of tracks without samples. */
  readonly drops: Readonly<Record<TrackKind, number>>;
  /** Returns the facts of each track with samples. */
  tracks(): TrackFacts[];
}

/**
 * A shorter time without samples is common where advertisements are joined, and hardly noticed; a segment
 * that was lost is rarely shorter.
 */
export const shortestGapS = 1;
const maxGapsShown = 3;

/** Counts what one source writes into `sink`: a few comparisons for each sample, nothing is kept. */
export function auditSink(sink: SampleSink): AuditedSink {
  const audits = new Map<number, TrackAudit>();
  const drops = { video: 0, audio: 0 };
  return {
    setFormat(format, track) {
      const number = sink.setFormat(format, track);
      if (!audits.has(number)) audits.set(number, createTrackAudit(format.kind, format.timescale));
      return number;
    },
    write(track, sample) {
      sink.write(track, sample);
      audits.get(track)?.add(sample);
    },
    drops,
    onDrop(kind) {
      drops[kind] += 1;
    },
    tracks: () =>
      [...audits.values()].flatMap((audit) => {
        const facts = audit.facts();
        return facts === undefined ? [] : [facts];
      }),
  };
}

interface TrackAudit {
  add(sample: Sample): void;
  /** Returns undefined if no sample is shown. */
  facts(): TrackFacts | undefined;
}

/** As far apart as pictures are reordered (H.264 and HEVC: 16). */
const neighbours = 16;

function createTrackAudit(kind: TrackKind, timescale: number): TrackAudit {
  const recent = new Float64Array(neighbours).fill(Number.NaN);
  const gaps: Gaps = { count: 0, totalS: 0, first: [] };
  let samples = 0;
  let moved = 0;
  let shared = 0;
  let start = Infinity;
  let end = -Infinity;
  let last = { dts: 0, pts: 0, duration: 0 };
  /** Hidden samples, which nobody sees at any time, came after the last one. */
  let isAfterHidden = false;
  /** The latest distance of two samples that is no gap; 0: not known yet. */
  let step = 0;

  function addStep(distance: number, lead: number): void {
    const usual = last.duration || step;
    const lost = distance - usual;
    if (usual > 0 && lost > shortestGapS * timescale) {
      const fromS = (last.dts + usual + lead) / timescale;
      gaps.count += 1;
      gaps.totalS += lost / timescale;
      if (gaps.first.length < maxGapsShown) {
        gaps.first.push({ fromS, toS: fromS + lost / timescale });
      }
    } else if (distance > 0) step = distance;
  }

  return {
    add({ dts, pts, duration, isHidden = false, isJump = false }) {
      if (isHidden) {
        samples += 1;
        isAfterHidden = true;
        return;
      }
      if (isAfterHidden || isJump) {
        addStep(pts - last.pts, 0);
      } else if (samples > 0) {
        // Where parts are joined, audio often overlaps by a sample of priming and a part of the last one.
        const allowed = kind === "audio" ? 2 * Math.max(last.duration, step) : 0;
        if (dts <= last.dts - allowed) moved += 1;
        else if (kind === "video" && recent.includes(pts)) shared += 1;
        addStep(dts - last.dts, last.pts - last.dts);
      }
      recent[samples % neighbours] = pts;
      // As the writer corrects it.
      const written = samples === 0 || isAfterHidden || isJump ? dts : Math.max(dts, last.dts + 1);
      samples += 1;
      isAfterHidden = false;
      start = Math.min(start, pts);
      end = Math.max(end, pts + (duration || step));
      last = { dts: written, pts, duration };
    },
    facts: () =>
      end === -Infinity
        ? undefined
        : {
            kind,
            samples,
            startS: start / timescale,
            endS: end / timescale,
            moved,
            shared,
            gaps,
          },
  };
}
