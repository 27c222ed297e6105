/** Creates a growing list of unsigned 32-bit integers: 4 to 8 bytes per number. */
export function createNumberList() {
  let numbers = new Uint32Array(256);
  let length = 0;
  return {
    get length(): number {
      return length;
    },
    push(value: number): void {
      if (length === numbers.length) {
        const larger = new Uint32Array(length * 2);
        larger.set(numbers);
        numbers = larger;
      }
      numbers[length++] = value;
    },
    at: (index: number): number | undefined => (index < length ? numbers[index] : undefined),
    /** Returns the numbers; valid until the next `push`. */
    values: (): Uint32Array => numbers.subarray(0, length),
  };
}

/** Creates a list that keeps equal numbers in a row as one pair of count and number; negative ones modulo 2^32. */
export function createRunLengths() {
  const pairs = createNumberList();
  let current = 0;
  let count = 0;
  return {
    push(value: number): void {
      if (count > 0 && value !== current) {
        pairs.push(count);
        pairs.push(current);
        count = 0;
      }
      current = value;
      count++;
    },
    /** Returns a function that returns one number after the other, also those that are pushed later; undefined at the end. */
    reader(): () => number | undefined {
      let pair = 0;
      let used = 0;
      return () => {
        for (;;) {
          const length = pairs.at(pair);
          if (used < (length ?? count)) {
            used += 1;
            return length === undefined ? current : pairs.at(pair + 1);
          }
          if (length === undefined) return undefined;
          pair += 2;
          used = 0;
        }
      };
    },
    /** Returns counts and numbers in turn, as if `next` had been pushed too. */
    pairs(next?: number): Uint32Array {
      const open = count > 0 ? [count, current] : [];
      if (next === current && count > 0) open[0] = count + 1;
      else if (next !== undefined) open.push(1, next);
      const done = pairs.values();
      const all = new Uint32Array(done.length + open.length);
      all.set(done);
      all.set(open, done.length);
      return all;
    },
  };
}
