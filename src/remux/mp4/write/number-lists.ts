/** A growing list of unsigned 32-bit integers: 4 to 8 bytes per number. */
export interface NumberList {
  readonly length: number;
  push(value: number): void;
  /** Returns the numbers; valid until the next `push`. */
  values(): Uint32Array;
}

/** A list that keeps equal numbers in a row as one pair of count and number. */
export interface RunLengths {
  push(value: number): void;
  /** Returns counts and numbers in turn, as if `next` had been pushed too. */
  pairs(next?: number): Uint32Array;
}

export function createNumberList(): NumberList {
  let numbers = new Uint32Array(256);
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(value) {
      if (length === numbers.length) {
        const larger = new Uint32Array(length * 2);
        larger.set(numbers);
        numbers = larger;
      }
      numbers[length++] = value;
    },
    values: () => numbers.subarray(0, length),
  };
}

/** Negative numbers are kept modulo 2^32. */
export function createRunLengths(): RunLengths {
  const pairs = createNumberList();
  let current = 0;
  let count = 0;
  return {
    push(value) {
      if (count > 0 && value !== current) {
        pairs.push(count);
        pairs.push(current);
        count = 0;
      }
      current = value;
      count++;
    },
    pairs(next) {
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
