/** Bytes of a file from `start` to `end`, both included. */
export interface IntRange {
  start: number;
  end: number;
}

/**
 * What a `Range` header asks for of `size` bytes (RFC 9110 §14.1.2): one range; `undefined` where the
 * whole is to be sent, which is the answer to a header that is not valid, to other units and to several
 * ranges (§14.2 lets a server pass over them); `"unsatisfiable"` where there is no such byte.
 */
export function readRange(header: string, size: number): IntRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header) ?? [];
  if (first === "") {
    if (last === "") return undefined;
    const length = Math.min(Number(last), size);
    if (Number(last) === 0) return "unsatisfiable";
    // No byte of an empty file can be named in Content-Range; the whole of it can be sent.
    return size === 0 ? undefined : { start: size - length, end: size - 1 };
  }
  if (last !== "" && Number(last) < Number(first)) return undefined;
  if (Number(first) >= size) return "unsatisfiable";
  return { start: Number(first), end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
