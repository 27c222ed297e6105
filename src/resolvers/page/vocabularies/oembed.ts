import { Parser } from "htmlparser2";
import { ServiceError } from "../../../errors.ts";
import type { Embed, Thumbnail } from "../../../page-info.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { readPixels } from "../../../parsers/count.ts";
import { readDuration } from "../../../parsers/duration.ts";
import { readLine } from "../../../parsers/text.ts";

/** What an oEmbed answer states; `null` for what it does not state or states in a wrong form. */
export interface OembedFacts {
  type: "video" | "rich" | "photo" | "link" | null;
  title: string | null;
  author_name: string | null;
  author_url: string | null;
  provider_name: string | null;
  thumbnail: Thumbnail | null;
  /** The player: the first iframe in `html`. */
  embed: Embed | null;
  /** Seconds. Not in the specification, but widely stated. */
  duration: number | null;
}

/** An iframe is looked for among so many elements. */
const maxElements = 1_000;

/** A field of XML, or the `html` of either form, is read no further. */
const maxHtmlLength = 100_000;

/**
 * Reads an oEmbed answer (oEmbed 1.0 §2.3.4) that was found at `url`, as JSON or XML, whichever it
 * begins like; `contentType` decides where neither shows. Numbers may be texts; addresses are
 * resolved against `url` and must be http(s).
 *
 * @throws ServiceError `upstream_invalid` where it is neither a JSON object nor an `oembed` element.
 */
export function readOembed(text: string, contentType: string | null, url: URL): OembedFacts {
  const fields = fieldsOf(text, contentType, url);
  const stated = (name: string) => stringOf(fields.get(name));
  const address = (name: string) => tryParseUrl(stated(name), url)?.href ?? null;
  const thumbnail = address("thumbnail_url");
  const type = stated("type")?.trim().toLowerCase();
  return {
    type: types.find((known) => known === type) ?? null,
    title: readLine(stated("title")),
    author_name: readLine(stated("author_name")),
    author_url: address("author_url"),
    provider_name: readLine(stated("provider_name")),
    thumbnail:
      thumbnail === null
        ? null
        : {
            url: thumbnail,
            width: readPixels(stated("thumbnail_width")),
            height: readPixels(stated("thumbnail_height")),
          },
    embed: embedOf(stated("html") ?? "", stated, url),
    duration: readDuration(stated("duration")),
  };
}

const types = ["video", "rich", "photo", "link"] as const;

type Fields = ReadonlyMap<string, unknown>;

function fieldsOf(text: string, contentType: string | null, url: URL): Fields {
  const begin = /\S/.exec(text)?.[0];
  const isXml = begin === "<" || (begin !== "{" && /\bxml\b/i.test(contentType ?? ""));
  let cause: unknown;
  try {
    const fields = isXml ? xmlFields(text) : jsonFields(text);
    if (fields !== null) return fields;
  } catch (error) {
    cause = error;
  }
  const rule = "it must be a JSON object or an XML oembed element (oEmbed 1.0 §2.3.4)";
  const message = `cannot read the oEmbed answer of ${url.href.slice(0, 200)}: ${rule}`;
  throw new ServiceError("upstream_invalid", message, { cause });
}

function jsonFields(text: string): Fields | null {
  const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? new Map(Object.entries(value)) : null;
}

/** The texts of the root's children; the rest of the document is passed over. */
function xmlFields(text: string): Fields | null {
  const fields = new Map<string, string>();
  let depth = 0;
  let field: string | null = null;
  let isOembed = false;
  const parser = new Parser(
    {
      onopentag(name) {
        depth += 1;
        if (depth === 1) isOembed = name === "oembed";
        if (depth === 2 && !fields.has(name)) fields.set((field = name), "");
        if (!isOembed || depth > 16) parser.pause();
      },
      ontext(part) {
        const start = field === null ? "" : (fields.get(field) ?? "");
        if (field === null || depth !== 2 || start.length >= maxHtmlLength) return;
        fields.set(field, start + part);
      },
      onclosetag() {
        depth -= 1;
        if (depth < 2) field = null;
      },
    },
    { xmlMode: true },
  );
  parser.end(text);
  return isOembed ? fields : null;
}

function embedOf(html: string, stated: (name: string) => string | null, url: URL): Embed | null {
  let embed: Embed | null = null;
  let elements = 0;
  const parser = new Parser({
    onopentag(name, attributes) {
      elements += 1;
      if (elements > maxElements) parser.pause();
      const src = name === "iframe" ? tryParseUrl(attributes["src"], url) : null;
      if (src === null) return;
      embed = {
        url: src.href,
        width: readPixels(stated("width")) ?? readPixels(attributes["width"]),
        height: readPixels(stated("height")) ?? readPixels(attributes["height"]),
      };
      parser.pause();
    },
  });
  parser.write(html.slice(0, maxHtmlLength));
  return embed;
}

function stringOf(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value : null;
}
