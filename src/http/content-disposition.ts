/**
 * The value of `Content-Disposition` that has browsers save a file under `name` (RFC 6266 §4). Names
 * beyond ASCII go into `filename*` (RFC 8187); `filename` is for clients that do not know it.
 */
export function attachment(name: string): string {
  const safe = name
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "")
    .replace(/[/\\]/g, "_");
  // Letters lose their marks rather than themselves: curl and others save under this name.
  const ascii = safe
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .normalize("NFC")
    .replace(/[^ -~]|["%]/gu, "_");
  return `attachment; filename="${ascii}"; filename*=UTF-8''${escapeAttribute(safe)}`;
}

/** Leaves RFC 8187's `attr-char` as they are, which `encodeURIComponent` has four more of. */
function escapeAttribute(text: string): string {
  const code = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();
  return encodeURIComponent(text).replace(/['()*]/g, (character) => `%${code(character)}`);
}
