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
  const stated = metas.filter(({ content }) => content.trim() !== "");
  const byName = Map.groupBy(stated, ({ name }) => name);
  const all = (...names: string[]) =>
    names.flatMap((name) => byName.get(name) ?? []).map(({ content }) => content);
  return {
    all,
    first: (...names) => all(...names)[0] ?? null,
    under: (prefix) =>
      metas
        .filter(({ name }) => name.startsWith(prefix))
        .map(({ name, content }) => ({ name: name.slice(prefix.length), content })),
  };
}
