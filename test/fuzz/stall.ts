export type Outcome<Output> = { value: Output } | { error: unknown };

export function outcomeOf<Output>(task: () => Promise<Output>): Promise<Outcome<Output>> {
  return task().then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}

/**
 * Returns the most CPU time of this thread between two event loop iterations while `task` ran, and the second most; unlike
 * wall time they do not depend on other processes.
 */
export async function measureStall<Output>(
  task: () => Promise<Output>,
): Promise<{ outcome: Outcome<Output>; stallMs: number; secondStallMs: number }> {
  let [longest, second] = [0, 0];
  let before = cpuMs();
  const measure = () => {
    const now = cpuMs();
    const stall = now - before;
    if (stall > longest) [longest, second] = [stall, longest];
    else if (stall > second) second = stall;
    before = now;
  };
  let immediate = setImmediate(function again() {
    measure();
    immediate = setImmediate(again);
  });
  try {
    const outcome = await outcomeOf(task);
    measure();
    return { outcome, stallMs: longest, secondStallMs: second };
  } finally {
    clearImmediate(immediate);
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
