import { dashFixtures } from "./media-fixtures/dash.ts";
import { hlsFixtures } from "./media-fixtures/hls.ts";
import { hlsTimelineFixtures } from "./media-fixtures/hls-timelines.ts";
import { progressiveFixtures } from "./media-fixtures/progressive.ts";
import type { Resources } from "./resources.ts";

/** A medium as a site has it, and what must come of it. */
export interface MediaFixture {
  /** As a test's title says it. */
  name: string;
  /** Path of the file or manifest to begin with, without the first slash. */
  entry: string;
  resources: Resources;
  /** What the site made it from: media files with one or more of its tracks. */
  sources: readonly Source[];
  /** How often the sources are shown one after the other. */
  times: number;
  /** Of the file that is to be made. */
  ext: string;
}

export interface Source {
  data: Buffer;
  ext: string;
}

/** One for each cell of the media matrix, by their names. */
export function readMediaFixtures(): Map<string, MediaFixture> {
  const all = [progressiveFixtures(), hlsFixtures(), hlsTimelineFixtures(), dashFixtures()];
  return new Map(all.flat().map((fixture) => [fixture.name, fixture]));
}
