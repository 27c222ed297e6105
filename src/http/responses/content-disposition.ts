import { createHash } from "node:crypto";

/**
 * Returns the value of `Content-Disposition` with which browsers save a file as `name` (RFC 6266 §4):
 * `filename*` has the whole name (RFC 8187), `filename` an ASCII version for clients that do not know it.
 * A name without Latin letters and digits is a part of its hash there, so that those of several files differ.
 * Neither begins with `.` or `-`: the file would be hidden, or taken for an option.
 */
export function attachment(name: string): string {
  const safe = withPlainStart(
    name
      .toWellFormed()
      .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "")
      .replace(/[/\\]/g, "_"),
  );
  // curl and others save under this name: letters keep their base letter, without the diacritic.
  const ascii = withPlainStart(
    safe
      .normalize("NFD")
      .replace(/\p{M}/gu, "")
      .normalize("NFC")
      .replace(/[^ -~]|["%]/gu, "_"),
  );
  const [stem = ""] = ascii.split(".");
  const plain = /[a-z\d]/i.test(stem) ? ascii : `${shortHash(safe)}${ascii.slice(stem.length)}`;
  return `attachment; filename="${plain}"; filename*=UTF-8''${escapeAttribute(safe)}`;
}

const shortHash = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 12);

function withPlainStart(name: string): string {
  return name.replace(/^[\s.-]+/, "_");
}

/** Escapes all but RFC 8187's `attr-char`; `encodeURIComponent` leaves four more characters as they are. */
function escapeAttribute(text: string): string {
  const code = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();
  return encodeURIComponent(text).replace(/['()*]/g, (character) => `%${code(character)}`);
}
