/** Prints rows as columns, the first left-aligned, the others right-aligned. */
export function printTable(title: string, head: readonly string[], rows: readonly string[][]): void {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
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

/** A measured number and its bound. */
export interface Target {
  name: string;
  value: number;
  unit: string;
  atLeast?: number;
  atMost?: number;
}

/** Prints each target and whether it is met. */
export function printTargets(targets: readonly Target[]): void {
  const rows = targets.map(({ name, value, unit, atLeast, atMost }) => {
    const holds = value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity);
    const rule = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
    return [name, `${format(value)} ${unit}`, `${rule} ${unit}`, holds ? "pass" : "FAIL"];
  });
  printTable("targets", ["target", "measured", "wanted", ""], rows);
}

/** Returns the middle value; the lower one of an even count; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1] ?? Number.NaN;
}

/** Formats with at least three significant digits. */
export function format(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
