import type { Vocabulary } from "../../model/page-info.ts";
import { type EntrySlice, listEntries } from "../entries.ts";
import type { Content } from "./content.ts";
import type { Description } from "./describe-page.ts";

/**
 * Returns the description with one slice of the entries that the document lists. What a page lists beside a medium, or beside
 * what may be a player, is not the page.
 */
export function withEntries(described: Description, content: Content, start: number): Description {
  const { entries = [], entries_count = null, sources: stated, ...fields } = described;
  const { entries: vocabulary, ...sources } = stated;
  const description = { ...fields, sources };
  if (content.kind === "list") return addEntries(description, content.list.slice, content.source);
  const isBeside = described.formats.length > 0 || (content.kind === "page" && content.draft.frames.length > 0);
  if (isBeside || vocabulary === undefined) return description;
  const listed = entries.slice(start);
  return addEntries(description, { start, listed, hasMore: false, count: entries_count }, vocabulary);
}

function addEntries(description: Description, slice: EntrySlice, source: Vocabulary): Description {
  const listed = listEntries("page", slice);
  const known = Object.entries(listed).filter(([, value]) => value !== null);
  const sources = Object.fromEntries(known.map(([field]) => [field, source]));
  return { ...description, ...listed, sources: { ...description.sources, ...sources } };
}
