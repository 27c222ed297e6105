import * as fc from "fast-check";
import { measureStall, type Outcome, outcomeOf } from "./stall.ts";

export type { Outcome } from "./stall.ts";

/** A named property that must hold for every input. */
export interface FuzzTarget {
  readonly name: string;
  /** Runs in the test suite, of each of `atOnce`. */
  readonly shortRuns: number;
  /** How many runs go on at the same time, because they mostly wait. */
  readonly atOnce: number;
  /** The property; a run that blocks the event loop for longer than `stallLimitMs` fails too. */
  property(options: PropertyOptions): fc.IAsyncProperty<[unknown]>;
  /** Returns what the runs so far were, in a few words; may be "". */
  summary(): string;
  /** Closes what the runs have opened. */
  close(): Promise<void>;
}

interface PropertyOptions {
  stallLimitMs: number;
  /** Receives the longest stall of each run. */
  onStall?: (stallMs: number) => void;
}

interface TargetOptions<Input, Prepared, Output> {
  name: string;
  input: fc.Arbitrary<Input>;
  /** Converts an input, which is printed on failure, to the argument of `run`. */
  prepare: (input: Input) => Prepared | Promise<Prepared>;
  /** The code under test; its stalls are measured. */
  run: (prepared: Prepared) => Output | Promise<Output>;
  /** Throws if the outcome is wrong; not measured. */
  check: (outcome: Outcome<Output>) => void;
  /** Factor of the stall limit: above 1 for code that runs in a thread of its own, `Infinity` if stalls say nothing; default 1. */
  stallFactor?: number;
  /** Runs in the test suite; default 150. */
  shortRuns?: number;
  /** Runs at the same time; default 1. */
  atOnce?: number;
  summary?: () => string;
  close?: () => Promise<void>;
}

/** A slow input is run again: the stall may have been a garbage collection. */
const attempts = 3;
/** A stall of this many times the limit is not retried. */
const certainFactor = 4;

export function defineTarget<Input, Prepared, Output>(options: TargetOptions<Input, Prepared, Output>): FuzzTarget {
  const { name, input, prepare, run, check, stallFactor = 1, shortRuns = 150, atOnce = 1 } = options;
  const { summary = () => "", close = async () => {} } = options;
  return {
    name,
    shortRuns,
    atOnce,
    summary,
    close,
    property({ stallLimitMs: commonLimitMs, onStall }) {
      const stallLimitMs = commonLimitMs * stallFactor;
      return fc.asyncProperty(input, async (value) => {
        const prepared = await prepare(value);
        const task = async () => run(prepared);
        // Measuring keeps the processor busy while a run waits.
        if (stallLimitMs === Infinity) return check(await outcomeOf(task));
        let stallMs = Infinity;
        for (let attempt = 0; attempt < attempts; attempt += 1) {
          const measured = await measureStall(task);
          check(measured.outcome);
          stallMs = Math.min(stallMs, measured.stallMs);
          if (stallMs <= stallLimitMs || measured.stallMs > certainFactor * stallLimitMs) break;
        }
        onStall?.(stallMs);
        if (stallMs > stallLimitMs) {
          throw new Error(`blocked the event loop for ${stallMs.toFixed(0)} ms, over ${stallLimitMs}`);
        }
      });
    },
  };
}
