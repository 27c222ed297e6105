/**
 * Starts work for each item, at most `limit` ahead, and gives the results in the order of the items. What
 * an unfinished iteration leaves running is the caller's to abort; its failures are no one's.
 */
export async function* mapConcurrent<T, R>(
  items: AsyncIterable<T>,
  limit: number,
  start: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const iterator = items[Symbol.asyncIterator]();
  const started: Promise<R>[] = [];
  let upcoming: Promise<IteratorResult<T>> | null = iterator.next();
  try {
    for (;;) {
      while (upcoming !== null && started.length < limit) {
        const next: IteratorResult<T> | undefined = await firstOf(upcoming, started[0]);
        if (next === undefined) break;
        upcoming = next.done === true ? null : iterator.next();
        if (next.done !== true) started.push(quiet(start(next.value)));
      }
      const result = started.shift();
      if (result === undefined) return;
      yield await result;
    }
  } finally {
    // Not waited for: it may be waiting itself, and then it ends with the caller's signal.
    if (upcoming !== null) void quiet(upcoming);
    if (iterator.return) void quiet(Promise.resolve(iterator.return()));
  }
}

/** The next item, or `undefined` where the result in front is there before it. */
async function firstOf<T, R>(
  upcoming: Promise<IteratorResult<T>>,
  front: Promise<R> | undefined,
): Promise<IteratorResult<T> | undefined> {
  if (front === undefined) return upcoming;
  const settled = () => undefined;
  return Promise.race([upcoming, front.then(settled, settled)]);
}

function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
