import type { DownloadContext } from "../engine.ts";
import { sourceDuration, type Plan, type Source, type SourceName } from "./plan.ts";

/** Tells how far a download is. */
export interface Meter {
  /** Bytes were fetched, or found on the disk. */
  tick(): void;
  /** The whole of a file is that long. */
  expect(name: SourceName, bytes: number | null): void;
  /** A segment of so many seconds is on the disk. */
  add(name: SourceName, seconds: number, bytes: number): void;
  /** Nothing is fetched any more. */
  process(): void;
}

/** `held` tells the bytes on the disk. */
export function createMeter(
  plan: Plan,
  held: { readonly bytes: number },
  onProgress: DownloadContext["onProgress"],
): Meter {
  const sources = [plan.main, plan.audio].filter((source) => source !== null);
  const gauges = new Map(sources.map((source) => [source.name, createGauge(source)]));
  let stage: "downloading" | "processing" = "downloading";

  function report(): void {
    const expected = gauges.values().reduce(sum, 0);
    const total_bytes = expected === null ? null : Math.max(expected, held.bytes);
    const isOver = stage === "processing";
    const downloaded_bytes = held.bytes;
    onProgress({ stage, downloaded_bytes, total_bytes: isOver ? held.bytes : total_bytes });
  }

  return {
    tick: report,
    expect(name, bytes) {
      const gauge = gauges.get(name);
      if (gauge?.isFile === true) gauge.expected = bytes;
      report();
    },
    add(name, seconds, bytes) {
      const gauge = gauges.get(name);
      if (gauge === undefined || gauge.durationS === null) return;
      gauge.seconds += seconds;
      gauge.bytes += bytes;
      if (gauge.seconds > 0) {
        gauge.expected = Math.round((gauge.bytes * gauge.durationS) / gauge.seconds);
      }
    },
    process() {
      stage = "processing";
      report();
    },
  };
}

/** What is known of one source's size. */
interface Gauge {
  isFile: boolean;
  /** Of the whole presentation; `null`: not told, or it is one file. */
  durationS: number | null;
  /** Of the segments that are on the disk. */
  seconds: number;
  bytes: number;
  /** Bytes of the whole: told, or extrapolated from the segments. */
  expected: number | null;
}

function createGauge(source: Source): Gauge {
  const isFile = source.kind === "file";
  return { isFile, durationS: sourceDuration(source), seconds: 0, bytes: 0, expected: null };
}

function sum(all: number | null, { expected }: Gauge): number | null {
  return all === null || expected === null ? null : all + expected;
}
