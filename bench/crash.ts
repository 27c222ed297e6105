import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crashDownload, crashMedia } from "../test/process/crash-download.ts";
import { createRandom } from "../test/random.ts";
import { crashRepeatedly } from "../test/process/crash.ts";
import { downloadMany } from "../test/process/download-many.ts";
import { webhookCrash } from "../test/process/webhook-crash.ts";
import { webhookOutage } from "../test/process/webhook-outage.ts";

/**
 * The long form of the crash tests: 20 kills while 50 clients POST, 50 kills during downloads, 1,000
 * tasks, 20 kills while 1,000 tasks end, and a minute in which the receiver of their messages does not listen:
 * `node bench/crash.ts [--only posts|downloads|many|webhooks|outage]… [--seed 1]`. Exits with 1 if anything is
 * lost, done twice, wrong or left over.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: Object.keys(parts) },
      seed: { type: "string", default: "1" },
    },
  });
  for (const [name, part] of Object.entries(parts)) {
    if (!values.only.includes(name)) continue;
    if (!(await part(createRandom(Number(values.seed))))) process.exitCode = 1;
  }
}

/** Each prints its report; returns whether everything is as it must be. */
const parts: Readonly<Record<string, (random: () => number) => Promise<boolean>>> = {
  posts: () =>
    inFolder(async (dataDir) => {
      const report = await crashRepeatedly({ dataDir, kills: 20, clients: 50, perRound: 2000 });
      console.log(JSON.stringify(report));
      return report.lost === 0 && report.duplicated === 0;
    }),

  async downloads(random) {
    let isRight = true;
    for (let round = 0; round < 5; round++) {
      for (const medium of crashMedia()) {
        const report = await inFolder((dataDir) => crashDownload({ dataDir, medium, kills: 5, random }));
        console.log(JSON.stringify({ medium: medium.name, ...report }));
        isRight &&= report.isRight && report.halfFiles === 0 && report.slowestRestartMs < 5_000;
      }
    }
    return isRight;
  },

  many: () =>
    inFolder(async (dataDir) => {
      const report = await downloadMany({ dataDir, tasks: 1_000 });
      console.log(JSON.stringify(report));
      const { tasks, succeeded, lost, runTwice, orphans, undeleted } = report;
      return succeeded === tasks * 0.9 && lost + runTwice + orphans + undeleted === 0;
    }),

  webhooks: () =>
    inFolder(async (dataDir) => {
      const report = await webhookCrash({ dataDir, kills: 20, tasks: 1_000 });
      console.log(JSON.stringify(report));
      return report.lost + report.disordered + report.forged === 0;
    }),

  outage: () =>
    inFolder(async (dataDir) => {
      const report = await webhookOutage({ dataDir, outageMs: 60_000, tasks: 1_000 });
      console.log(JSON.stringify(report));
      return report.lost + report.disordered === 0;
    }),
};

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "unreel-crash-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await main();
