import { decodeXML } from "entities";
import { invalidSubtitlesError } from "./text.ts";

const maxEntities = 1000;
const maxValueLength = 1000;
/** How much longer a document may become. */
const maxAdded = 2 << 20;
/** A document type declaration is before the root element, and short. */
const maxDeclarations = 64 * 1024;

/**
 * Returns a function that decodes text and attributes of an XML document that begins so: references to characters, and to entities that XML has
 * or that the document declares itself (XML 1.0 §4.2). Values may refer to entities that are declared before them. References to those with elements,
 * in other files, over 1,000 characters long or after the first thousand stay as they are.
 *
 * The function throws a ServiceError, `upstream_invalid`, once declared entities have made the document 2 Mi characters longer.
 */
export function createEntityDecoder(document: string): (written: string) => string {
  const root = document.slice(0, maxDeclarations).search(/<(?:[\w.-]+:)?tt[\s>]/);
  const start = document.slice(0, Math.max(0, root));
  const entities = new Map<string, string>();
  for (const [, name = "", double, single = ""] of start.matchAll(declaration)) {
    if (entities.size >= maxEntities) break;
    const value = (double ?? single).replaceAll(reference, (written, each: string) => entities.get(each) ?? written);
    const isNew = !entities.has(name) && !known.has(name);
    if (isNew && value.length <= maxValueLength) entities.set(name, value);
  }
  let added = 0;
  const expand = (written: string) =>
    written.replaceAll(reference, (each, name: string) => {
      const value = entities.get(name) ?? each;
      added += value.length - each.length;
      if (added > maxAdded) throw invalidSubtitlesError(`their entities have over ${maxAdded} characters`);
      return value;
    });
  return (written) => {
    if (!written.includes("&")) return written;
    return decodeXML(entities.size === 0 ? written : expand(written));
  };
}

/** Of XML itself (§4.6). */
const known: ReadonlySet<string> = new Set(["amp", "lt", "gt", "quot", "apos"]);
const declaration = /<!ENTITY\s{1,20}([A-Za-z_][\w.-]{0,100})\s{1,20}(?:"([^"<]{0,1000})"|'([^'<]{0,1000})')/g;
const reference = /&([A-Za-z_][\w.-]{0,100});/g;
