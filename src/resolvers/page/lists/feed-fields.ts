import type { Subtitle } from "../../../model/entry.ts";

/** What is read of the feed itself, or of one item. */
export interface Fields {
  /** By the name of the element: the first text of each. */
  texts: Map<string, string>;
  medium: URL | null;
  link: URL | null;
  picture: URL | null;
  chapters: { startS: number; title: string }[];
  chaptersUrl: URL | null;
  transcripts: { language: string | null; subtitle: Subtitle }[];
}

/** The elements whose texts are read, by what they state; the first one that has a text counts. */
export const names = {
  title: ["title", "atom:title", "itunes:title"],
  description: ["description", "subtitle", "itunes:summary"],
  uploader: ["itunes:author", "name", "dc:creator"],
  language: ["language", "dc:language"],
  date: ["pubdate", "published", "atom:published", "dc:date", "updated"],
  duration: ["itunes:duration"],
  id: ["guid", "id", "atom:id"],
  link: ["link"],
  picture: ["url", "logo", "icon"],
} as const;
export const readNames: ReadonlySet<string> = new Set(Object.values(names).flat());
/** The elements within which the texts of those within them count too. */
export const wrappers: ReadonlySet<string> = new Set(["author", "image"]);
export const wrapped: ReadonlySet<string> = new Set(["name", "url"]);

/** Returns those of what says nothing. */
export function newFields(): Fields {
  return {
    texts: new Map(),
    medium: null,
    link: null,
    picture: null,
    chapters: [],
    chaptersUrl: null,
    transcripts: [],
  };
}

/** Returns the first of these texts that is not blank. */
export function first(texts: ReadonlyMap<string, string>, of: readonly string[]): string | undefined {
  return of.map((name) => texts.get(name)).find((text) => text !== undefined && text.trim() !== "");
}
