import type { Format } from "../model/page-info.ts";

/**
 * Returns a function that makes ids unique: a repeated id gets `~1`, `~2` …, which `findFormat` strips.
 * Manifest readers pass `-`, because their ids must not look like that. Ids have at most 255 characters.
 */
export function createFormatIds(separator: "~" | "-" = "~"): (wanted: string) => string {
  const taken = new Set<string>();
  /** The next number to try, by stem. */
  const next = new Map<string, number>();
  return (wanted) => {
    const wish = wanted
      .replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, " ")
      .slice(0, 255)
      .toWellFormed();
    const stem = wish.slice(0, 240).toWellFormed();
    let id = wish;
    for (let n = next.get(stem) ?? 1; taken.has(id); n += 1) {
      id = `${stem}${separator}${n}`;
      next.set(stem, n + 1);
    }
    taken.add(id);
    return id;
  };
}

/**
 * Returns the format with this id, else the one whose id differs only by the `~n` that `createFormatIds`
 * appended in a record of several manifests; `undefined` if there is none.
 */
export function findFormat(formats: readonly Format[], formatId: string): Format | undefined {
  const stem = formatId.replace(/~\d{1,9}$/, "");
  return formats.find(({ format_id }) => format_id === formatId) ?? formats.find(({ format_id }) => format_id === stem);
}
