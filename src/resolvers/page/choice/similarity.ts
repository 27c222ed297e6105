import { decodeHTML } from "entities";

/** Shorter titles may be a part of another by chance, and shorter ids of a URL; in characters. */
const minTitleLength = 8;
const minIdeographs = 4;
const minIdLength = 4;
const maxIdLength = 200;

const ideograph = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
/** What separates a page's title from the name of its site. */
const separator = /\s+[|\u2013\u2014·-]\s+|_/;

export interface PageNames {
  titles: readonly string[];
  /** The page's own first, then its canonical one and those of its players. */
  urls: readonly URL[];
}

export interface MediumNames {
  titles: readonly string[];
  /** Texts of which any may be its title. */
  texts: readonly string[];
  ids: readonly string[];
}

/** How well a medium's names match those of the page. */
interface Similarity {
  /** `whole`: one of its titles is the page's; `part`: one is a part of the other. */
  title: "whole" | "part" | "none";
  /** An id is a part of the page's URL. */
  isId: boolean;
}

/** Returns a function that compares a medium with the page's titles and URLs. */
export function createSimilarity(page: PageNames): (medium: MediumNames) => Similarity {
  const pageTitles = page.titles.map(comparable);
  // Without the name of the site at its end.
  const parts = page.titles.flatMap((title) => title.slice(0, 1_000).split(separator).slice(0, -1));
  const whole = new Set([...pageTitles, ...parts.map(comparable)]);
  const written = new Set([...page.titles, ...parts].filter(({ length }) => length >= minTitleLength));
  return ({ titles, texts, ids }) => {
    const own = titles.map(comparable);
    const isWhole =
      own.some((title) => title.length > 1 && whole.has(title)) || texts.some((text) => written.has(text));
    const isPart = () => own.some((title) => pageTitles.some((each) => isPartOf(title, each)));
    return {
      title: isWhole ? "whole" : isPart() ? "part" : "none",
      isId: ids.some((id) => page.urls.some((url) => hasId(url, id))),
    };
  };
}

/** Whether one title is a part of the other, in whole words. */
function isPartOf(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (ideograph.test(short)) return short.length >= minIdeographs && long.includes(short);
  return short.length >= minTitleLength && ` ${long} `.includes(` ${short} `);
}

function comparable(text: string): string {
  return decodeHTML(text.slice(0, 1_000))
    .replace(/[\s\p{P}]+/gu, " ")
    .trim()
    .toLowerCase();
}

/** Whether the URL has the id, not as part of a longer word or number; a short one at its end. */
function hasId({ href, pathname, searchParams }: URL, id: string): boolean {
  if (id.length > maxIdLength || id.length < 2) return false;
  if (id.length < minIdLength) {
    return pathname.endsWith(`/${id}`) || [...searchParams.values()].includes(id);
  }
  const at = href.indexOf(id);
  const isEdge = (character: string | undefined) => !/[a-z\d]/i.test(character ?? "");
  return at >= 0 && isEdge(href[at - 1]) && isEdge(href[at + id.length]);
}

const trailer = /trailer|teaser|tráiler|bande[ -]annonce|трейлер|予告|预告|預告|예고편/i;
const maxNameLength = 1_000;

/** Whether a title, a name or the path of a file says that it is a trailer. */
export function namesTrailer(text: string): boolean {
  return trailer.test(text.slice(0, maxNameLength));
}

/** Whether a page's title or path says that it is about a trailer, be it one for boats. */
export function isOfTrailer({ titles, urls: [own] }: PageNames): boolean {
  return titles.some(namesTrailer) || namesTrailer(own?.pathname ?? "");
}
