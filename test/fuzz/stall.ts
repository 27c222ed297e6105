export type Outcome<Output> = { value: Output } | { error: unknown };

/**
 * Returns the most CPU time of this thread between two event loop iterations while `task` ran; unlike
 * wall time it does not depend on other processes.
 */
export async function measureStall<Output>(
  task: () => Promise<Output>,
): Promise<{ outcome: Outcome<Output>; stallMs: number }> {
  let longest = 0;
  let before = cpuMs();
  const measure = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
  };
  let immediate = setImmediate(function again() {
    measure();
    immediate = setImmediate(again);
  });
  try {
    const outcome = await task().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    measure();
    return { outcome, stallMs: longest };
  } finally {
    clearImmediate(immediate);
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
