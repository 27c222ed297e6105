import * as fc from "fast-check";

/** What is fuzzed, under one name: a property that holds for every input. */
export interface FuzzTarget {
  readonly name: string;
  /** The property; a run that holds the event loop for longer than `stallLimitMs` fails too. */
  property(options: PropertyOptions): fc.IAsyncProperty<[unknown]>;
  /** Frees what the runs have opened. */
  close(): Promise<void>;
}

export interface PropertyOptions {
  stallLimitMs: number;
  /** Told the longest stall of each run. */
  onStall?: (stallMs: number) => void;
}

export interface TargetParts<Input, Prepared, Output> {
  name: string;
  input: fc.Arbitrary<Input>;
  /** Makes of an input, which is printed where it fails, what the run takes. */
  prepare: (input: Input) => Prepared | Promise<Prepared>;
  /** What is measured. */
  run: (prepared: Prepared) => Output | Promise<Output>;
  /** Throws where the outcome breaks the promise; not measured. */
  check: (outcome: Outcome<Output>) => void;
  /** How many times the stall limit a run may take, for work that is done in a thread of its own. */
  patience?: number;
  close?: () => Promise<void>;
}

export type Outcome<Output> = { value: Output } | { error: unknown };

/**
 * A slow input is tried again, since a garbage collection may have come in between; not one that is
 * this many times over the limit.
 */
const attempts = 3;
const doubtless = 4;

export function defineTarget<Input, Prepared, Output>(
  parts: TargetParts<Input, Prepared, Output>,
): FuzzTarget {
  const { name, input, prepare, run, check, patience = 1, close = async () => {} } = parts;
  return {
    name,
    close,
    property({ stallLimitMs: commonLimitMs, onStall }) {
      const stallLimitMs = commonLimitMs * patience;
      return fc.asyncProperty(input, async (value) => {
        const prepared = await prepare(value);
        let stallMs = Infinity;
        for (let attempt = 0; attempt < attempts; attempt += 1) {
          const measured = await measureStall(async () => run(prepared));
          check(measured.outcome);
          stallMs = Math.min(stallMs, measured.stallMs);
          if (stallMs <= stallLimitMs || measured.stallMs > doubtless * stallLimitMs) break;
        }
        onStall?.(stallMs);
        if (stallMs > stallLimitMs) {
          throw new Error(`held the event loop for ${stallMs.toFixed(0)} ms, over ${stallLimitMs}`);
        }
      });
    },
  };
}

/**
 * The most processor time that this thread spent between two turns of the event loop while `task`
 * ran: unlike wall time it does not count what other processes on the machine take.
 */
async function measureStall<Output>(
  task: () => Promise<Output>,
): Promise<{ outcome: Outcome<Output>; stallMs: number }> {
  let longest = 0;
  let before = cpuMs();
  const note = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
  };
  let turn = setImmediate(function again() {
    note();
    turn = setImmediate(again);
  });
  try {
    const outcome = await task().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    note();
    return { outcome, stallMs: longest };
  } finally {
    clearImmediate(turn);
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
