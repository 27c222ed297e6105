/** Returns the one of `known` that `name` is, or a misspelling of; undefined: none. */
export function findMisspelt(name: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(name);
  return known.find((other) => isNear(letters, lettersOf(other)));
}

/** Returns the one of `known` that `name` most likely means: a misspelling, or its first or last words alone. */
export function findLikely(name: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(name);
  const isPart = (other: string) => letters.length >= 5 && (other.startsWith(letters) || other.endsWith(letters));
  return findMisspelt(name, known) ?? known.find((other) => isPart(lettersOf(other)));
}

/** `max_height`, `maxHeight` and `Max-Height` are the same. */
function lettersOf(name: string): string {
  return name
    .slice(0, 100)
    .toLowerCase()
    .replaceAll(/[_\s-]/g, "");
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
