import { finish } from "../../parsers/steps.ts";
import { parseMultivariant } from "./hls.ts";
import { type Attributes, isMultivariant } from "./lines.ts";

/**
 * Returns the URLs of what is redundant to the variant or rendition at `media`, in the order of the multivariant playlist
 * `text` from `url`: variants with the same attributes except their pathway and the names of their groups (RFC 8216
 * §6.2.4, 8216bis §4.4.6.2), or renditions with the same attributes in the groups of such variants. Any other text has none.
 */
export function findRedundant(text: string, url: URL, media: URL): URL[] {
  if (!isMultivariant(text)) return [];
  const { variants, renditions } = finish(parseMultivariant(text, url));
  const keyed = variants.map((variant) => ({ ...variant, key: keyOf(variant.attributes) }));
  const own = keyed.find((variant) => variant.url.href === media.href);
  const ownRendition = renditions.find((rendition) => rendition.url?.href === media.href);
  const found = own ? keyed.filter(({ key }) => key === own.key).map((variant) => variant.url) : [];
  if (ownRendition !== undefined) {
    const group = ownRendition.attributes.get("GROUP-ID") ?? "";
    const users = new Set(keyed.filter(({ attributes }) => groupsOf(attributes).includes(group)).map(({ key }) => key));
    const groups = new Set(keyed.filter(({ key }) => users.has(key)).flatMap(({ attributes }) => groupsOf(attributes)));
    const ownKey = keyOf(ownRendition.attributes);
    for (const rendition of renditions) {
      const isRedundant =
        groups.has(rendition.attributes.get("GROUP-ID") ?? "") && keyOf(rendition.attributes) === ownKey;
      if (isRedundant && rendition.url !== null) found.push(rendition.url);
    }
  }
  const others = new Map(found.map((other) => [other.href, other]));
  others.delete(media.href);
  return [...others.values()];
}

const groupNames = ["AUDIO", "VIDEO", "SUBTITLES"];

/** Attributes that say where something is, not what it is. */
const placeNames: ReadonlySet<string> = new Set([...groupNames, "CLOSED-CAPTIONS", "GROUP-ID", "PATHWAY-ID", "URI"]);

function keyOf(attributes: Attributes): string {
  return JSON.stringify(
    [...attributes].filter(([name]) => !placeNames.has(name)).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function groupsOf(attributes: Attributes): string[] {
  return groupNames.flatMap((name) => attributes.get(name) ?? []);
}
