/** Prints rows as columns, the first one to the left, numbers to the right. */
export function printTable(
  title: string,
  head: readonly string[],
  rows: readonly string[][],
): void {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ");
  console.log(`\n${title}`);
  for (const row of [head, ...rows]) console.log(line(row));
}

/** One number that a bench is judged by. */
export interface Target {
  name: string;
  value: number;
  unit: string;
  atLeast?: number;
  atMost?: number;
}

/** Prints each target with its verdict; the verdicts decide nothing else. */
export function printTargets(targets: readonly Target[]): void {
  const rows = targets.map(({ name, value, unit, atLeast, atMost }) => {
    const holds = value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity);
    const rule = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
    return [name, `${format(value)} ${unit}`, `${rule} ${unit}`, holds ? "pass" : "FAIL"];
  });
  printTable("targets", ["target", "measured", "wanted", ""], rows);
}

/** The middle value; of an even number the lower one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1] ?? Number.NaN;
}

/** Three digits that count. */
export function format(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
