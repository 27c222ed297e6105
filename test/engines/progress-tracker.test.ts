import { expect, test } from "vitest";
import type { DownloadProgress } from "../../src/engines/engine.ts";
import type { Source, SourceName } from "../../src/engines/native/sources/plan.ts";
import { ProgressTracker } from "../../src/engines/native/sources/progress-tracker.ts";
import { formatOf } from "../formats.ts";

const segment = {
  url: "https://media.example.com/1.ts",
  range: null,
  init: null,
  key: null,
  timeline: 0,
  offsetS: null,
};

const headers = () => ({});

async function* none(): AsyncGenerator<never> {}

const file = (name: SourceName): Source => ({
  name,
  role: name === "main" ? "main" : "audio",
  headers,
  format: formatOf(name),
  kind: "file",
  part: null,
  url: new URL("https://media.example.com/film.mp4"),
  mirrors: none(),
});

function segments(name: SourceName, durationsS: number[], liveJournalPath: string | null): Source {
  const list = {
    segments: durationsS.map((durationS, sequence) => ({ ...segment, durationS, sequence })),
    hasEnded: true,
    refreshS: 0,
  };
  const reload = async () => list;
  return {
    name,
    role: "main",
    headers,
    format: formatOf(name),
    kind: "segments",
    list,
    mirrors: none(),
    reload,
    liveJournalPath,
    selection: null,
    part: null,
  };
}

function track(...sources: [Source, ...Source[]]) {
  const stored = { bytes: 0 };
  const reports: DownloadProgress[] = [];
  const tracker = new ProgressTracker({ sources }, stored, (progress) => reports.push(progress));
  return { tracker, stored, last: () => reports.at(-1) };
}

test("the total of a file is the stated one, and never less than the stored bytes", () => {
  const { tracker, stored, last } = track(file("main"));
  tracker.setTotal("main", 500);
  expect(last()).toEqual({ stage: "downloading", downloaded_bytes: 0, total_bytes: 500 });
  stored.bytes = 600;
  tracker.update();
  expect(last()).toEqual({ stage: "downloading", downloaded_bytes: 600, total_bytes: 600 });
  tracker.setTotal("main", null);
  expect(last()).toEqual({ stage: "downloading", downloaded_bytes: 600, total_bytes: null });
});

test("the total of segments is extrapolated from the fetched ones", () => {
  const { tracker, stored, last } = track(segments("main", [2, 4, 4], null));
  tracker.update();
  expect(last()).toMatchObject({ total_bytes: null });
  stored.bytes = 300;
  tracker.addSegment("main", 2, 300);
  tracker.setTotal("main", 300);
  expect(last()).toMatchObject({ downloaded_bytes: 300, total_bytes: 1_500 });
});

test("the total of two sources is their sum, once both are known", () => {
  const { tracker, last } = track(segments("main", [2, 2], null), file("audio"));
  tracker.addSegment("main", 2, 100);
  tracker.update();
  expect(last()).toMatchObject({ total_bytes: null });
  tracker.setTotal("audio", 50);
  expect(last()).toMatchObject({ total_bytes: 250 });
});

test("the total of a live stream is unknown until it is processed", () => {
  const { tracker, stored, last } = track(segments("main", [2, 2], "main.live"));
  stored.bytes = 100;
  tracker.addSegment("main", 2, 100);
  tracker.update();
  const live = { downloaded_bytes: 100, is_live: true };
  expect(last()).toEqual({ ...live, stage: "downloading", total_bytes: null });
  tracker.startProcessing();
  expect(last()).toEqual({ ...live, stage: "processing", total_bytes: 100 });
});
