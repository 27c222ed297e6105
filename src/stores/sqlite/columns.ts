import type { SQLOutputValue } from "node:sqlite";

/** A row as SQLite gives it; its columns are read by type, so that a wrong one is found here. */
export type Columns = Readonly<Record<string, SQLOutputValue>>;

export function text(row: Columns, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw new TypeError(`column ${column} holds no text`);
  return value;
}

export function integer(row: Columns, column: string): number {
  const value = row[column];
  if (typeof value !== "number") throw new TypeError(`column ${column} holds no number`);
  return value;
}
