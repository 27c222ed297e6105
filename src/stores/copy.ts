/**
 * A deep copy of plain JSON data, at a fraction of what `structuredClone` costs. A key named
 * `__proto__` stays an ordinary key: the spread defines it before it is assigned.
 */
export function copyJson<T>(value: T): T;
export function copyJson(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson);
  const copy: Record<string, unknown> = { ...value };
  for (const key in copy) copy[key] = copyJson(copy[key]);
  return copy;
}
