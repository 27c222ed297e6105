import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Beginnings of the paths below `test/` of the files that take longest, in the order in which they start: by what they
 * compute and wait together, those of both suites.
 */
const slowest = [
  "stores/postgres.system",
  "engines/matrix.system",
  "fuzz.system",
  "process/worker-deaths",
  "web/page.system",
  "process/growing-files",
  "process/database-outage",
  "process/kills",
  "engines/live-dash",
  "subtitles/hostile",
  "process/disk-faults",
  "engines/part-ranges",
  "process/terminal",
  "web/page-states",
  "resolvers/ytdlp/faults",
  "resolvers/ytdlp/escapes",
  "process/streams",
  "process/webhooks",
  "sites/sites",
  "process/main",
  "process/retention",
  "process/small-memory",
  "process/download-crash",
  "engines/live-numbering",
  "resolvers/page-stalls",
  "resolvers/ytdlp/ways-out",
  "process/collection-kills",
  "fuzz/growth",
  "process/hostile-clients",
  "engines/merged-mp4",
  "process/ytdlp",
  "process/keys",
  "remux/mp4-cut.system",
  "process/large-archive",
  "remux/mp4-remux",
  "remux/audio-files",
  "remux/video-joins",
  "stores/postgres/opening",
  "stores/postgres/outage",
  "stores/postgres/feed-outages",
  "deploy",
  "http/docs.system",
  "remux/mp4-embed",
  "remux/audio-tags",
  "process/roles",
  "resolvers/ytdlp",
  "remux/matroska",
  "process/",
  "sites/",
  "http/openapi",
  "http/long-lists",
  "engines/published-damage",
  "stores/sqlite.test",
  "engines/",
  "resolvers/",
  "remux/",
  "stores/",
  "webhooks/",
  "runner/",
  "web/",
  "http/",
];

/** Starts long files first, so that none runs alone at the end, and gives every shard (`--shard=1/2`) its share of them. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return slowFirst(files);
  }

  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard ?? { index: 1, count: 1 };
    return slowFirst(files).filter((_, place) => place % count === index - 1);
  }
}

function slowFirst(files: TestSpecification[]): TestSpecification[] {
  return files.toSorted((a, b) => rank(a) - rank(b) || a.moduleId.localeCompare(b.moduleId));
}

function rank({ moduleId }: TestSpecification): number {
  const index = slowest.findIndex((path) => moduleId.includes(`/test/${path}`));
  return index === -1 ? slowest.length : index;
}

export default defineConfig({
  test: {
    // `npm test` leaves out the files named `*.system.test.ts`, which take minutes: they start processes, kill them, use a
    // browser, ffmpeg or yt-dlp, or wait for real time-outs. `npm run test:system` runs those alone.
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/postgres/global-setup.ts", "test/media/kept.ts"],
    // Patience alone, for machines with ten things to do at a time: what the service promises, tests measure. Some tests take
    // a minute where nothing else runs.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 240_000 } },
    // No module keeps state, so files share processes and what these have imported.
    isolate: false,
    // V8 would collect the small heap of a young process again and again. The downloads that tests start get the option, too.
    execArgv: ["--initial-old-space-size=128"],
    // The default is one less than there are processors. But the files of the system tests, which compute for ten minutes
    // together, wait for timers, the database and processes for even longer.
    maxWorkers: 3 * availableParallelism(),
    maxConcurrency: 3,
    sequence: { sequencer: SlowFirst },
  },
});
