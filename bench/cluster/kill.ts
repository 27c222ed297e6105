import { createRandom } from "../../test/random.ts";
import { killWorkers } from "../../test/process/kill-workers.ts";
import { format, median, printTable, type Target } from "../table.ts";
import type { Bench } from "./part.ts";

/** Services measured in parallel, each on its own database. */
const streams = 4;

/** Kills one of two workers during a download 20 times; the other one resumes it. */
export async function measureKills({ postgres, isQuick }: Bench): Promise<Target[]> {
  const kills = isQuick ? 1 : 5;
  const urls = await Promise.all(Array.from({ length: streams }, () => postgres.open()));
  const all = urls.map((storeUrl, stream) => killWorkers({ storeUrl, kills, random: createRandom(stream + 1) }));
  const reports = (await Promise.all(all)).flat();
  const seconds = reports.map((report) => report.seconds);
  const longest = Math.max(...seconds);
  const wrong = reports.filter(({ isRight }) => !isRight).length;
  const mostAtOnce = Math.max(...reports.map((report) => report.mostAtOnce));
  printTable(
    "a worker killed during a download",
    ["", "kills", "s, shortest", "median", "longest", "wrong files", "at once"],
    [
      [
        "until the other requests the film",
        `${reports.length}`,
        ...[Math.min(...seconds), median(seconds), longest].map(format),
        `${wrong}`,
        `${mostAtOnce}`,
      ],
    ],
  );
  return [
    {
      name: "SIGKILL until the other worker resumes, longest",
      value: longest,
      unit: "s",
      atMost: 15,
    },
    { name: "wrong files", value: wrong, unit: "", atMost: 0 },
    { name: "workers at a time for a task, most", value: mostAtOnce, unit: "", atMost: 1 },
  ];
}
