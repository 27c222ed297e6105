import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { measureEvents } from "./cluster/events.ts";
import { measureKills } from "./cluster/kill.ts";
import { measureMany } from "./cluster/many.ts";
import type { Bench } from "./cluster/part.ts";
import { measureRolling } from "./cluster/rolling.ts";
import { openBenchPostgres } from "./postgres.ts";
import { printTargets, type Target } from "./table.ts";

/**
 * Several processes on one Postgres: `node bench/cluster.ts [--only NAME]… [--quick]`. Exits with 1 if a
 * part fails; a missed target is only printed.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: Object.keys(parts) },
      quick: { type: "boolean", default: false },
    },
  });
  await using postgres = await openBenchPostgres();
  console.log(`Node ${process.version}, ${availableParallelism()} cores; ${postgres.name}`);
  const targets: Target[] = [];
  for (const [name, part] of Object.entries(parts)) {
    if (!values.only.includes(name)) continue;
    targets.push(...(await part({ postgres, isQuick: values.quick })));
  }
  printTargets(targets);
}

const parts: Readonly<Record<string, (bench: Bench) => Promise<Target[]>>> = {
  kill: measureKills,
  many: measureMany,
  events: measureEvents,
  rolling: measureRolling,
};

await main();
