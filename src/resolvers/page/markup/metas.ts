import type { Markup } from "./markup.ts";

/** A page's `<meta>` elements by name. */
export interface Metas {
  /** Returns the first content of the first of these names that has any. */
  first(...names: string[]): string | null;
  /** Returns all contents of these names, in the order of `names`. */
  all(...names: string[]): string[];
  /** Returns those whose name starts with `prefix`, in page order, with the prefix removed. */
  under(prefix: string): { name: string; content: string }[];
}

/** Indexes the `<meta>` elements of a page by name; `first` and `all` skip blank contents. */
export function indexMetas({ metas }: Pick<Markup, "metas">): Metas {
  const byName = new Map<string, string[]>();
  for (const { name, content } of metas) {
    if (content.trim() === "") continue;
    const contents = byName.get(name);
    if (contents === undefined) byName.set(name, [content]);
    else contents.push(content);
  }
  const first = (names: string[]) => names.find((name) => byName.has(name)) ?? "";
  return {
    all: (...names) => names.flatMap((name) => byName.get(name) ?? []),
    first: (...names) => byName.get(first(names))?.[0] ?? null,
    under: (prefix) =>
      metas
        .filter(({ name }) => name.startsWith(prefix))
        .map(({ name, content }) => ({ name: name.slice(prefix.length), content })),
  };
}
