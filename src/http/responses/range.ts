import type { IntRange } from "../../net/byte-range.ts";

/**
 * Parses a `Range` header for a file of `size` bytes (RFC 9110 §14.1.2). Returns `undefined` if the whole
 * file is to be sent: the header is invalid or has another unit or several ranges, which §14.2 lets a
 * server ignore; `"unsatisfiable"` if the file has no byte in the range.
 */
export function parseRange(header: string, size: number): IntRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header) ?? [];
  if (first === "") {
    if (last === "") return undefined;
    const length = Math.min(Number(last), size);
    if (Number(last) === 0) return "unsatisfiable";
    // Content-Range cannot express a range of an empty file.
    return size === 0 ? undefined : { start: size - length, end: size - 1 };
  }
  if (last !== "" && Number(last) < Number(first)) return undefined;
  if (Number(first) >= size) return "unsatisfiable";
  return { start: Number(first), end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
