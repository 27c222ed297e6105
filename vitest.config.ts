import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Folders below `test/` whose files take longest, in the order in which they start. */
const slowFolders = [
  "web",
  "process",
  "engines",
  "sites",
  "resolvers",
  "stores",
  "metrics",
  "remux",
  "http",
];

/** Starts long files first, so that none runs alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const index = slowFolders.findIndex((folder) => moduleId.includes(`/test/${folder}/`));
  return index === -1 ? slowFolders.length : index;
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/postgres/global-setup.ts"],
    // Patience alone, for machines with ten things to do at a time: what the service promises, tests measure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // No module keeps state, so files share processes and what these have imported.
    isolate: false,
    // The default is one less than there are processors, but many tests wait for processes and timers.
    maxWorkers: availableParallelism() + 1,
    maxConcurrency: 3,
    sequence: { sequencer: SlowFirst },
  },
});
