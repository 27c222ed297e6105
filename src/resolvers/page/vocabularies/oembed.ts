import { Parser } from "htmlparser2";
import { ServiceError } from "../../../model/errors.ts";
import { parseDuration, parsePixels } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { createResource, type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";

/** The iframe must be among this many first elements of `html`; no more attributes, or fields of XML, are read. */
const maxElements = 1_000;
const maxAttributes = 1_000;
const maxFields = 1_000;

/** Limit of an XML field, and of `html` in either format, UTF-16 code units. */
const maxHtmlLength = 100_000;

/**
 * Extracts the fields of the oEmbed response of `url` (oEmbed 1.0 §2.3.4) and, if its type is video, the
 * player: the first iframe in `html`. The first character shows whether it is JSON or XML, else
 * `contentType` does. Invalid fields are null. Numbers may be strings; `duration` (seconds) is not in the
 * specification, but common. URLs are resolved against `url` and must be http or https.
 *
 * @throws ServiceError `upstream_invalid` if it is neither a JSON object nor an `oembed` element
 */
export function extractOembed(text: string, contentType: string | null, url: URL): Metadata {
  const fields = parseFields(text, contentType, url);
  const stated = (name: string) => stringOf(fields.get(name));
  const urlIn = (name: string) => tryParseUrl(stated(name), url);
  const isVideo = stated("type")?.trim().toLowerCase() === "video";
  const player = isVideo ? findPlayer(stated("html") ?? "", stated, url) : null;
  return {
    site_name: parseLine(stated("provider_name")),
    title: parseLine(stated("title")),
    duration: parseDuration(stated("duration")),
    uploader: parseLine(stated("author_name")),
    uploader_url: urlIn("author_url")?.href ?? null,
    thumbnails: thumbnailsAt(
      urlIn("thumbnail_url"),
      parsePixels(stated("thumbnail_width")),
      parsePixels(stated("thumbnail_height")),
    ),
    resources: player === null ? [] : [player],
    media_type: isVideo ? "video" : null,
  };
}

type Fields = ReadonlyMap<string, unknown>;

function parseFields(text: string, contentType: string | null, url: URL): Fields {
  const begin = /\S/.exec(text)?.[0];
  const isXml = begin === "<" || (begin !== "{" && /\bxml\b/i.test(contentType ?? ""));
  let cause: unknown;
  try {
    const fields = isXml ? parseXml(text) : parseJson(text);
    if (fields !== null) return fields;
  } catch (error) {
    cause = error;
  }
  const rule = "it must be a JSON object or an XML oembed element (oEmbed 1.0 §2.3.4)";
  const message = `cannot parse the oEmbed response of ${url.href.slice(0, 200)}: ${rule}`;
  throw new ServiceError("upstream_invalid", message, { cause });
}

function parseJson(text: string): Fields | null {
  const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? new Map(Object.entries(value)) : null;
}

/** Returns the texts of the root's children by name; null if the root is not `oembed`. */
function parseXml(text: string): Fields | null {
  const fields = new Map<string, string>();
  let depth = 0;
  let attributes = 0;
  let field: string | null = null;
  let isOembed = false;
  const parser = new Parser(
    {
      onopentag(name) {
        depth += 1;
        if (depth === 1) isOembed = name === "oembed";
        if (depth === 2 && !fields.has(name)) fields.set((field = name), "");
        if (!isOembed || depth > 16 || fields.size > maxFields) parser.pause();
      },
      onattribute() {
        if (++attributes > maxAttributes) parser.pause();
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

function findPlayer(html: string, stated: (name: string) => string | null, url: URL): Resource | null {
  let player: Resource | null = null;
  let elements = 0;
  let attributeCount = 0;
  const parser = new Parser({
    onopentag(name, attributes) {
      elements += 1;
      if (elements > maxElements) parser.pause();
      const src = name === "iframe" ? tryParseUrl(attributes["src"], url) : null;
      if (src === null) return;
      player = createResource(src, "player", {
        width: parsePixels(stated("width")) ?? parsePixels(attributes["width"]),
        height: parsePixels(stated("height")) ?? parsePixels(attributes["height"]),
      });
      parser.pause();
    },
    onattribute() {
      if (++attributeCount > maxAttributes) parser.pause();
    },
  });
  parser.write(html.slice(0, maxHtmlLength));
  return player;
}

function stringOf(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value : null;
}
