/**
 * Calls `start` for each item, at most `limit` ahead, and yields the results in the order of the items. If
 * the iteration is left early, the caller must abort the calls in progress; their errors are ignored.
 */
export async function* mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  start: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : each(items);
  const started: Promise<R>[] = [];
  let upcoming: Promise<IteratorResult<T>> | null = iterator.next();
  try {
    for (;;) {
      while (upcoming !== null && started.length < limit) {
        const next: IteratorResult<T> | undefined = await nextUnlessSettled(upcoming, started[0]);
        if (next === undefined) break;
        upcoming = next.done === true ? null : iterator.next();
        if (next.done !== true) started.push(ignoreRejection(start(next.value)));
      }
      const result = started.shift();
      if (result === undefined) return;
      yield await result;
    }
  } finally {
    // Not awaited: they may be pending until the caller aborts.
    if (upcoming !== null) void ignoreRejection(upcoming);
    if (iterator.return) void ignoreRejection(Promise.resolve(iterator.return()));
  }
}

async function* each<T>(items: Iterable<T>): AsyncGenerator<T, undefined> {
  yield* items;
}

/** Returns the next item; `undefined` if the first pending result settles before. */
async function nextUnlessSettled<T, R>(
  upcoming: Promise<IteratorResult<T>>,
  front: Promise<R> | undefined,
): Promise<IteratorResult<T> | undefined> {
  if (front === undefined) return upcoming;
  return Promise.race([upcoming, Promise.allSettled([front]).then(() => undefined)]);
}

function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
