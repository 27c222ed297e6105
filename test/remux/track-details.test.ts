import { expect, test } from "vitest";
import type { TrackFormat } from "../../src/remux/samples.ts";
import { describeAudio } from "../../src/remux/track-details.ts";
import { audioFormat, videoFormat } from "./mp4-samples.ts";

test("what a stream's format says of audio is said of its first audio track", () => {
  const formats: TrackFormat[] = [];
  const sink = describeAudio(
    { setFormat: (format) => formats.push(format) - 1, write: () => {} },
    { language: "en", name: "Jokes" },
    1,
  );
  const first = [videoFormat, audioFormat].map((format) => sink.setFormat({ ...format, language: null }));
  sink.setFormat({ ...audioFormat, language: null });
  sink.setFormat({ ...audioFormat, language: "de" }, first[1]);
  expect(formats.map(({ kind, language, name }) => [kind, language, name])).toEqual([
    ["video", null, undefined],
    ["audio", "en", "Jokes"],
    ["audio", null, undefined],
    ["audio", "de", "Jokes"],
  ]);
});
