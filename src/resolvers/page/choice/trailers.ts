const trailer = /trailer|teaser|tráiler|bande[ -]annonce|трейлер|予告|预告|預告|예고편/i;
const maxLength = 1_000;

/** Whether a title, a name or the path of a file says that it is a trailer. */
export function namesTrailer(text: string): boolean {
  return trailer.test(text.slice(0, maxLength));
}
