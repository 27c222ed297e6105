import * as fc from "fast-check";
import type { FuzzTarget } from "./target.ts";
import { targets } from "./targets.ts";

const usage = "usage: node test/fuzz/run.ts [seconds for each target, default 60] [target] [seed]";
const stallLimitMs = 100;

const [seconds = "60", only, seed] = process.argv.slice(2);
const chosen = targets.filter(({ name }) => only === undefined || name === only);
if (!(Number(seconds) > 0) || chosen.length === 0) {
  console.error(`${usage}\ntargets: ${targets.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

let failures = 0;
for (const target of chosen) {
  if (!(await fuzz(target, Number(seconds) * 1_000))) failures += 1;
}
process.exitCode = failures === 0 ? 0 : 1;

async function fuzz(target: FuzzTarget, timeMs: number): Promise<boolean> {
  let worstMs = 0;
  const property = target.property({
    stallLimitMs,
    onStall: (stallMs) => (worstMs = Math.max(worstMs, stallMs)),
  });
  const details = await fc.check(property, {
    seed: seed === undefined ? Math.trunc(Math.random() * 0x7fffffff) : Number(seed),
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: timeMs,
    markInterruptAsFailure: false,
    maxSkipsPerRun: 0,
  });
  await target.close();
  console.log(
    `${target.name.padEnd(5)} ${String(details.numRuns).padStart(8)} runs  seed ${details.seed}  ` +
      `worst stall ${worstMs.toFixed(1)} ms  ${details.failed ? "FAILED" : "ok"}`,
  );
  if (details.failed) console.log(fc.defaultReportMessage(details)?.slice(0, 20_000));
  return !details.failed;
}
