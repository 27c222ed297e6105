import { type Chapter, cutTimes, type Tags, withEnds } from "../../../remux/additions.ts";
import type { MediaDescription } from "../../engine.ts";
import type { OwnDescription } from "../inspect/own-description.ts";
import type { MediaPosition } from "./place-cues.ts";

/** Returns what a file says of its media: what the page says, and besides that what the media say themselves. */
export function mergeDescriptions(
  { tags, name, chapters }: MediaDescription,
  own: OwnDescription,
  { originS, cut, isPublished = false }: MediaPosition,
): OwnDescription {
  const title = tags.title ?? own.tags.title ?? name;
  // Its own tags stay, its chapters and its cover.
  if (isPublished) return { tags: { ...tags, title }, chapters, cover: null };
  const said = Object.entries(tags).map(([field, value]) => [field, value ?? own.tags[field as keyof Tags]]);
  const merged = { ...(Object.fromEntries(said) as Tags), title };
  const isOwn = chapters.length === 0;
  if (!isOwn && cut === undefined) return { tags: merged, chapters, cover: own.cover };
  // Those of the page count from the first frame.
  const moved = moveChapters(withEnds(isOwn ? own.chapters : chapters), isOwn ? -originS : cut!.zeroS);
  return { tags: merged, chapters: cut === undefined ? moved : cutTimes(moved, cut.kept), cover: own.cover };
}

function moveChapters(chapters: readonly Chapter[], byS: number): Chapter[] {
  return chapters.map((chapter) => ({
    ...chapter,
    startS: Math.max(0, chapter.startS + byS),
    endS: chapter.endS + byS,
  }));
}
