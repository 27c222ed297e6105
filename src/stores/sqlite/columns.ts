import type { SQLOutputValue } from "node:sqlite";

/** A row as SQLite returns it. */
export type Columns = Readonly<Record<string, SQLOutputValue>>;

/** @throws TypeError if the column does not hold text. */
export function text(row: Columns, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw new TypeError(`column ${column} holds no text`);
  return value;
}

/** @throws TypeError if the column does not hold a number. */
export function integer(row: Columns, column: string): number {
  const value = row[column];
  if (typeof value !== "number") throw new TypeError(`column ${column} holds no number`);
  return value;
}
