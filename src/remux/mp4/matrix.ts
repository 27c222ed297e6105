/**
 * Transformation of the video when it is shown (ISO/IEC 14496-12 §8.3.2): a b u c d v x y w; fixed point with
 * 16 fractional bits, u v w with 30.
 */
export type Matrix = readonly number[];

export const unityMatrix: Matrix = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];

/** Whether the matrix changes nothing. */
export function isUnity(matrix: Matrix): boolean {
  return matrix.every((value, i) => value === unityMatrix[i]);
}

/** Returns the matrix that applies `first` (a track's) and then `second` (the movie's). */
export function multiplyMatrices(first: Matrix, second: Matrix): Matrix {
  if (isUnity(second)) return first;
  return first.map((_, at) => {
    const row = at - (at % 3);
    const column = at % 3;
    const sum = [0, 1, 2].reduce((total, i) => {
      const value = (first[row + i] ?? 0) / (i === 2 ? 2 ** 30 : 2 ** 16);
      return total + value * (second[3 * i + column] ?? 0);
    }, 0);
    return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.round(sum)));
  });
}

/** Whether width and height change places. */
export function isQuarterTurn([a = 0, b = 0]: Matrix): boolean {
  return Math.abs(b) > Math.abs(a);
}
