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
  const firstSeed = seed === undefined ? Math.trunc(Math.random() * 0x7fffffff) : Number(seed);
  const check = (_: unknown, index: number) =>
    fc.check(property, {
      seed: firstSeed + index,
      numRuns: Number.MAX_SAFE_INTEGER,
      interruptAfterTimeLimit: timeMs,
      markInterruptAsFailure: false,
      maxSkipsPerRun: 0,
    });
  const results = await Promise.all(Array.from({ length: target.atOnce }, check));
  await target.close();
  const runs = results.reduce((sum, { numRuns }) => sum + numRuns, 0);
  const failed = results.filter((result) => result.failed);
  const summary = target.summary();
  console.log(
    `${target.name.padEnd(5)} ${String(runs).padStart(8)} runs  seed ${firstSeed}  ` +
      `worst stall ${worstMs.toFixed(1)} ms  ${failed.length > 0 ? "FAILED" : "ok"}${summary && `  ${summary}`}`,
  );
  for (const result of failed) {
    console.log(fc.defaultReportMessage(result)?.slice(0, 20_000));
    console.log(result.errorInstance);
  }
  return failed.length === 0;
}
