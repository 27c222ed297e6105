import type { PageInfo } from "../../../model/page-info.ts";

/** What the page states about itself, to compare media with. */
export interface PageIdentity {
  titles: readonly string[];
  /** The page's own first, then its canonical one and those of its players. */
  urls: readonly URL[];
  /** Seconds. */
  duration: number | null;
  isFrontPage: boolean;
  /** A vocabulary calls the page video or audio, or it has a player. */
  isMedium: boolean;
  /** What the vocabularies call the page; null: nothing. */
  mediaType: PageInfo["media_type"] | null;
}

/**
 * Why a medium is excluded. `doubtful`: only the name of its file or folder says so; `other`: it is not the page's; `preview`:
 * it is a part of one; `never`: it is an advertisement, captions or part of the site's design.
 */
export type Exclusion = "none" | "doubtful" | "other" | "preview" | "never";

/** A medium that the page's vocabularies or its players name. */
export interface Candidate {
  /** The same for all candidates that are one medium. */
  key: unknown;
  kind: "video" | "audio";
  titles: readonly string[];
  /** Texts of which any may be its title. */
  texts: readonly string[];
  ids: readonly string[];
  /** Of its page and of its player. */
  urls: readonly URL[];
  /** Seconds. */
  duration: number | null;
  exclusion: Exclusion;
  /** What is around it, not its file, says that it is another page's medium. */
  isInOther: boolean;
  /** It has a title and a duration, and nothing around it excludes it. */
  isDescribed: boolean;
  /** A vocabulary calls it the page's main entity. */
  isMain: boolean;
  /** It is in the page's article. */
  isInArticle: boolean;
  /** It is an element of a list. */
  isElement: boolean;
  /** It is one of several elements of a list. */
  isListed: boolean;
  /** It is the one file of one of several tags that are alike. */
  isOneOfTags: boolean;
}
