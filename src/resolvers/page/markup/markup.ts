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
  players: Player[];
  frames: Attributes[];
  /** The scripts, and the tags that may hold a player's data, in page order; not decoded yet. */
  playerSources: PlayerSource[];
  /** Decodes them. */
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
}

/** A script's text in parts, or a tag with its attributes as written. */
export type PlayerSource = { script: readonly string[] } | { name: string; source: string };
