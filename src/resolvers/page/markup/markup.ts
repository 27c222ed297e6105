import type { Attributes } from "./attributes.ts";
import type { PageText } from "./charset.ts";
import type { Thing } from "./thing.ts";

/** The parts of a page that may state metadata, as written: neither resolved nor trimmed. */
export interface Markup {
  language: string | null;
  base: string | null;
  title: string | null;
  /** In page order; `name` is each of `property`, `name` and `http-equiv`, in lower case. */
  metas: { name: string; content: string }[];
  /** The `<link>` elements that are used, by relation, in lower case. */
  links: Map<string, Attributes[]>;
  /** Sources of the JSON-LD blocks. */
  jsonLd: string[];
  /** Sources of the playlists that WordPress plays, in JSON. */
  playlists: string[];
  players: Player[];
  frames: Attributes[];
  /** The scripts, and the tags that may hold a player's data, in page order; not decoded yet. */
  playerSources: PlayerSource[];
  pageText: Pick<PageText, "decode">;
  /** The top-level microdata items. */
  items: readonly Thing[];
}

/** A `<video>` or `<audio>`, or another element that plays, with its `<source>` and `<track>` elements. */
export interface Player {
  kind: "video" | "audio";
  attributes: Attributes;
  sources: Attributes[];
  tracks: Attributes[];
  /** It is in an `<aside>`, a `<footer>` or a `<nav>`. */
  isAside: boolean;
}

/** A script's text, or a tag with its attributes as written. */
export type PlayerSource = { script: string } | { name: string; source: string };

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
    if (content.trim() !== "") byName.getOrInsertComputed(name, () => []).push(content);
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
