import type { PageNames } from "./similarity.ts";

const trailer = /trailer|teaser|tráiler|bande[ -]annonce|трейлер|予告|预告|預告|예고편/i;
const maxLength = 1_000;

/** Whether a title, a name or the path of a file says that it is a trailer. */
export function namesTrailer(text: string): boolean {
  return trailer.test(text.slice(0, maxLength));
}

/** Whether a page's title or path says that it is about a trailer, be it one for boats. */
export function isOfTrailer({ titles, urls: [own] }: PageNames): boolean {
  return titles.some(namesTrailer) || namesTrailer(own?.pathname ?? "");
}
