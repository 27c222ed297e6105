/** Of the random inputs of tests: the same in each run; another `SEED` tries others. */
export const seed = Number(process.env["SEED"] ?? 1);

/** Returns numbers from 0 up to 1, the same for the same `start` (mulberry32). */
export function createRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns integers from 0 up to `limit`, the same for the same `start`. */
export function createIntegers(start: number): (limit: number) => number {
  const random = createRandom(start);
  return (limit) => Math.floor(random() * limit);
}
