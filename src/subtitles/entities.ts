import { invalidSubtitlesError } from "./text.ts";

const maxEntities = 1000;
const maxValueLength = 1000;
/** How much longer a document may become. */
const maxAdded = 2 << 20;
/** A document type declaration is before the root element, and short. */
const maxDeclarations = 64 * 1024;

/**
 * Replaces references to the entities that an XML document declares itself (XML 1.0 §4.2), outside its declarations. Values may refer to entities that are
 * declared before them. References to those with elements, in other files, over 1,000 characters long or after the first thousand stay as they are.
 *
 * @throws ServiceError `upstream_invalid` if that makes the document 2 Mi characters longer.
 */
export function expandEntities(text: string): string {
  const root = text.slice(0, maxDeclarations).search(/<(?:[\w.-]+:)?tt[\s>]/);
  const start = text.slice(0, Math.max(0, root));
  const entities = new Map<string, string>();
  for (const [, name = "", double, single = ""] of start.matchAll(declaration)) {
    if (entities.size >= maxEntities) break;
    const value = (double ?? single).replaceAll(reference, (written, each: string) => entities.get(each) ?? written);
    const isNew = !entities.has(name) && !known.has(name);
    if (isNew && value.length <= maxValueLength) entities.set(name, value.replaceAll('"', "&quot;"));
  }
  if (entities.size === 0) return text;
  let added = 0;
  const expanded = text.slice(start.length).replaceAll(reference, (written, name: string) => {
    const value = entities.get(name) ?? written;
    added += value.length - written.length;
    if (added > maxAdded) throw invalidSubtitlesError(`their entities have over ${maxAdded} characters`);
    return value;
  });
  return start + expanded;
}

/** Of XML itself (§4.6). */
const known: ReadonlySet<string> = new Set(["amp", "lt", "gt", "quot", "apos"]);
const declaration = /<!ENTITY\s{1,20}([A-Za-z_][\w.-]{0,100})\s{1,20}(?:"([^"<]{0,1000})"|'([^'<]{0,1000})')/g;
const reference = /&([A-Za-z_][\w.-]{0,100});/g;
