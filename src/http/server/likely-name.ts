/**
 * Returns the one of `known` that `name` most likely means: itself or a misspelling of it, its words in another order, or
 * its first or last words alone; undefined: none.
 */
export function findLikely(name: string, known: readonly string[]): string | undefined {
  const words = wordsOf(name);
  const letters = words.join("");
  const sorted = words.toSorted().join();
  const isSame = (other: readonly string[]) => other.toSorted().join() === sorted || isNear(letters, other.join(""));
  const isPart = (other: string) => letters.length >= 5 && (other.startsWith(letters) || other.endsWith(letters));
  return known.find((other) => isSame(wordsOf(other))) ?? known.find((other) => isPart(wordsOf(other).join("")));
}

/** `max_height`, `maxHeight` and `Max-Height` have the same. */
function wordsOf(name: string): string[] {
  const separated = name.slice(0, 100).replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_");
  return separated.toLowerCase().split(/[_\s-]+/);
}

/** Whether at most every fourth letter of `known` is changed, left out, added, or swapped with the next one. */
function isNear(name: string, known: string): boolean {
  const most = Math.floor(known.length / 4);
  return Math.abs(name.length - known.length) <= most && distance(name, known) <= most;
}

/** Returns the distance of Damerau and Levenshtein (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (isSame ? 0 : 1),
        isSwapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
