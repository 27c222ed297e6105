type Value = string | number | null;

/** Between texts without it, such as JSON, in which it would be escaped (RFC 7464), names and ids. */
const separator = "\u001E";

/** Types whose values have no character that an array escapes. */
const plainTypes: ReadonlySet<string> = new Set(["bigint", "integer", "uuid"]);

/**
 * Returns a parameter for `arrayOf` with the same type: the driver would escape each quote of each value. All of them null are one null,
 * which `unnest` repeats beside other arrays.
 */
export function toArray<Row>(
  type: string,
  rows: readonly Row[],
  of: (row: Row) => Value,
): string | readonly Value[] | null {
  const values = rows.map(of);
  if (values.length > 0 && values.every((value) => value === null)) return null;
  if (type === "json") return values.join(separator);
  return plainTypes.has(type) ? `{${values.map((value) => value ?? "NULL").join()}}` : values;
}

/** Returns SQL that makes an array of a parameter; `json`: of texts without the separator, none of which is null. */
export function arrayOf(name: string, type: string): string {
  return type === "json" ? `string_to_array(:${name}, E'\\x1E')` : `:${name}::${type}[]`;
}
