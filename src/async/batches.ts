/** Returns a function that does `work` for items: for those that are given while it is done for others together, in their order, after these. */
export function createBatches<T>(work: (items: readonly T[]) => Promise<void>): (item: T) => Promise<void> {
  let waiting: T[] = [];
  let next: Promise<void> | undefined;
  let last = Promise.resolve();

  function workOff(): Promise<void> {
    const items = waiting;
    waiting = [];
    next = undefined;
    return work(items);
  }

  return (item) => {
    waiting.push(item);
    next ??= last.then(workOff, workOff);
    last = next;
    return next;
  };
}
