/** One line of a playlist: a tag with what stands after its colon, or (`tag: null`) a URI. */
export interface PlaylistLine {
  /** In upper case, with the `#`. */
  tag: string | null;
  value: string;
}

const maxLineLength = 65_536;

/**
 * The lines of a playlist (RFC 8216 §4.1) in order, cut to 64 Ki characters; blank ones and
 * comments are left out.
 */
export function* readLines(text: string): Generator<PlaylistLine> {
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(start, Math.min(end, start + maxLineLength)).trim();
    start = end + 1;
    if (line === "") continue;
    if (!line.startsWith("#")) {
      yield { tag: null, value: line };
      continue;
    }
    const colon = line.indexOf(":");
    const tag = (colon === -1 ? line : line.slice(0, colon)).toUpperCase();
    if (tag.startsWith("#EXT")) yield { tag, value: colon === -1 ? "" : line.slice(colon + 1) };
  }
}

/**
 * An attribute list (RFC 8216 §4.2), names in upper case, the first of a repeated name. Forgives
 * white space, unclosed and missing quotes: `CODECS=a,b` without quotes is read as one value.
 */
export function readAttributes(list: string): Map<string, string> {
  const attributes = new Map<string, string>();
  const next = /([^=,]*)(?:=\s*(?:"([^"]*)"?|([^,]*)))?,?/y;
  let unquoted: string | null = null;
  while (next.lastIndex < list.length) {
    const [, rawName = "", quoted, bare] = next.exec(list) ?? [];
    const name = rawName.trim().toUpperCase();
    const isValue = quoted !== undefined || bare !== undefined;
    if (isValue && name !== "" && !attributes.has(name)) {
      attributes.set(name, (quoted ?? bare ?? "").trim());
      unquoted = quoted === undefined ? name : null;
    } else if (!isValue && name !== "" && unquoted !== null) {
      attributes.set(unquoted, `${attributes.get(unquoted)},${rawName.trim()}`);
    }
  }
  return attributes;
}

const maxVariables = 1_000;
const maxValueLength = 8_192;
const maxSubstituted = 1_048_576;
const costOfOne = 100;

export interface Variables {
  /** Takes the attribute list of an EXT-X-DEFINE; the first definition of a name stays. */
  define(list: string): void;
  /** `text` with each `{$name}` that is defined replaced by its value. */
  substitute(text: string): string;
}

/**
 * The variables of the playlist at `url` (RFC 8216bis §4.4.2.3), whose query QUERYPARAM reads. At
 * most about 1 MiB of text is put in for one playlist, in at most 10,000 places, so that variables
 * made of variables stay small; what is not defined, or no longer fits, stays as written.
 */
export function createVariables(url: URL): Variables {
  const values = new Map<string, string>();
  let budget = maxSubstituted;

  function substitute(text: string): string {
    if (budget <= 0 || !text.includes("{$")) return text;
    return text.replaceAll(/\{\$([\w-]+)\}/g, (reference, name: string) => {
      const value = values.get(name);
      if (value === undefined || budget <= 0) return reference;
      budget -= value.length + costOfOne;
      return value;
    });
  }

  function define(list: string): void {
    const attributes = readAttributes(list);
    const parameter = attributes.get("QUERYPARAM");
    const name = attributes.get("NAME") ?? parameter;
    const value =
      parameter === undefined ? attributes.get("VALUE") : url.searchParams.get(parameter);
    if (name === undefined || value === undefined || value === null) return;
    if (values.has(name) || values.size >= maxVariables) return;
    values.set(name, substitute(value).slice(0, maxValueLength));
  }

  return { define, substitute };
}
