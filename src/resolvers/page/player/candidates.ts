import { isManifest } from "../../../parsers/media-type.ts";
import type { Exclusion } from "../choice/choose-medium.ts";
import { names, properties } from "../lexicon/words.ts";
import { nameWithoutQuality } from "../lists/played-entries.ts";
import type { Resource } from "../metadata.ts";
import { type Data, isTag, namesFile, onceForEach } from "../scripts/data.ts";
import { ownDurationOf, titlesOf } from "./item.ts";
import { type MediaAttributes, readAttributes, resourceOf } from "./media-attributes.ts";
import { exclusionOfData, exclusionOfField, isMediumName, mayBeUrl, stricterOf } from "./names.ts";

/** One medium that the page's scripts and tags name, in its variants. */
export interface PlayerMedium {
  /** The object that describes it, with its title, duration and the like; else the one that has its URL. */
  readonly item: Data;
  readonly resources: Resource[];
  /** Files to download: they are the medium's only if no player plays others. */
  readonly downloads: Resource[];
  /** Why names exclude it. */
  readonly exclusion: Exclusion;
}

const maxResources = 2_000;
/** Of all resources together; on a long base, a page could name many long URLs shortly. */
const maxUrlsLength = 4 * 1024 * 1024;
/** URLs that are looked at: a page could name the same one in each of its texts. */
const maxUrls = 20_000;
const maxVariants = 200;
const maxParents = 50;
/** How much the durations of the variants of one medium may differ, seconds. */
const maxDurationRange = 5;

/** Returns the media that `roots` name, in page order. The same URL twice is of one medium. */
export function findCandidates(roots: readonly Data[], base: URL): PlayerMedium[] {
  const media = new MediaCollection();
  const pending = roots.toReversed();
  for (let data = pending.pop(); data !== undefined; data = pending.pop()) {
    const children: Data[] = [];
    let attributes: MediaAttributes | null = null;
    let exclusion: Exclusion = "none";
    for (const { key, value } of data.fields) {
      if (media.isFull) return media.complete();
      if (typeof value !== "string") {
        if (value.isMarked) children.push(value);
        continue;
      }
      if (!isMediumName(key, data) && !(isFileUrl(value) && !hasNamedFile(data))) continue;
      for (const { url, label } of urlsIn(value)) {
        if (!mayBeUrl(key, url)) continue;
        if (attributes === null) {
          attributes = readAttributes(data);
          exclusion = exclusionOfData(data);
        }
        const stated = label === null ? attributes : { ...attributes, label };
        const resource = resourceOf(key, url, stated, base);
        if (resource !== null) media.add(resource, key, data, exclusion);
      }
    }
    pending.push(...children.toReversed());
  }
  return media.complete();
}

/** The media that have been found, by the objects that describe them and by their URLs. */
class MediaCollection {
  readonly #found = new Set<PlayerMedium>();
  readonly #byItem = new Map<Data, Map<Exclusion, PlayerMedium>>();
  readonly #byUrl = new Map<string, PlayerMedium>();
  /** Links to files whose names differ only in quality lead to one medium. */
  readonly #linkItems = new Map<string, Data>();
  #urlCount = 0;
  #urlsLength = 0;

  get isFull(): boolean {
    return this.#byUrl.size >= maxResources || this.#urlCount >= maxUrls || this.#urlsLength >= maxUrlsLength;
  }

  /** Adds what the field `key` of `data` has the URL of. */
  add(resource: Resource, key: string, data: Data, dataExclusion: Exclusion): void {
    const exclusion = stricterOf(dataExclusion, exclusionOfField(key, resource.url));
    const id = `${exclusion} ${resource.url.href}`;
    const known = this.#byUrl.get(id);
    this.#urlCount++;
    if (known === undefined) this.#urlsLength += id.length;
    const isForDownload = [key, data.name, data.parent?.name ?? ""].some((name) => names.has(name, "download"));
    const isLink = isForDownload && isTag(data);
    const medium = known ?? this.#mediumOf(isLink ? this.#linkItem(data, resource.url) : this.#itemOf(data), exclusion);
    this.#found.add(medium);
    this.#byUrl.set(id, medium);
    const list = isForDownload ? medium.downloads : medium.resources;
    if (known === undefined && list.length < maxVariants) list.push(resource);
  }

  complete(): PlayerMedium[] {
    return [...this.#found].map(completed);
  }

  #linkItem(data: Data, url: URL): Data {
    const name = nameWithoutQuality(url);
    return this.#linkItems.getOrInsertComputed(name, () => data);
  }

  #mediumOf(item: Data, exclusion: Exclusion): PlayerMedium {
    const byExclusion = this.#byItem.getOrInsertComputed(item, () => new Map());
    return byExclusion.getOrInsertComputed(exclusion, () => ({ item, resources: [], downloads: [], exclusion }));
  }

  /** Returns the object that describes the medium whose URL `data` has. */
  #itemOf(data: Data): Data {
    let item = data;
    for (let n = 0; n < maxParents; n++) {
      const { parent, kind, name } = item;
      if (parent === null || kind === "block") return item;
      const isElement = kind === "object" && parent.kind === "array";
      const isVariant = names.has(isElement ? parent.name : name, "variant") && !(isElement && isListOfMedia(parent));
      if (kind === "object" && !isVariant && (isElement || isDescribed(item))) return item;
      // A variable's value or an argument: nothing around it describes it.
      if (parent.kind === "block")
        return (isVariant && titlesOf(item).length === 0) || kind === "array" ? parent : item;
      item = parent;
    }
    return item;
  }
}

/**
 * Returns the URLs in a text, as written: the text itself, or those of `[360p]https://…,[720p]https://…` or
 * `https://… or https://…`.
 */
function urlsIn(text: string): { url: string; label: string | null }[] {
  if (!text.startsWith("[")) {
    const urls = text.split(/(?:,| or )(?=https?:\/\/)/, maxVariants);
    return urls.map((url) => ({ url, label: null }));
  }
  return text.split(/,(?=\[)/, maxVariants).flatMap((part) => {
    const [, label = "", url] = /^\[([^\]]{1,60})\](\S+)/.exec(part) ?? [];
    return url === undefined ? [] : [{ url, label }];
  });
}

/**
 * Whether it is the absolute URL of a usual file, or a manifest's path (dash.js' `initialize(video, "/1.mpd")`). Its field may
 * have any name if no other one is named as a medium's.
 */
function isFileUrl(text: string): boolean {
  if (/^\.{0,2}\/[^\s"'<>]{1,1000}\.(?:m3u8|mpd)(?:[?#]|$)/i.test(text)) return true;
  return /^https?:\/\/[^\s"'<>]{1,1000}\.(?:m3u8|mpd|mp4|m4v|webm)(?:[?#]|$)/i.test(text);
}

const hasNamedFile = onceForEach((data) =>
  data.fields.some(({ key, value }) => typeof value === "string" && isMediumName(key, data) && namesFile(value)),
);

/** Completes a medium: if it has a manifest, drops URLs without an extension, which are of the manifest's parts. */
function completed(medium: PlayerMedium): PlayerMedium {
  const all = medium.resources.length > 0 ? medium.resources : medium.downloads;
  const resources = all.some(isOfManifest)
    ? all.filter((each) => isOfManifest(each) || namesFile(each.url.pathname))
    : all;
  return { ...medium, resources };
}

const isOfManifest = ({ type, url }: Resource): boolean => isManifest(type, url);

/** Whether elements of the list have titles or durations that differ: they are media, not variants of one. */
const isListOfMedia = onceForEach(({ fields }) => {
  const elements = fields.slice(0, maxVariants).flatMap(({ value }) => (typeof value === "string" ? [] : value));
  const [first] = elements;
  // Few lists of variants need to be looked at further.
  if (first === undefined || (titlesOf(first).length === 0 && ownDurationOf(first) === null)) return false;
  const titles = elements.flatMap((each) => titlesOf(each).slice(0, 1));
  const durations = elements.flatMap((each) => ownDurationOf(each) ?? []);
  const range = Math.max(...durations) - Math.min(...durations);
  return new Set(titles).size > 1 || range > maxDurationRange;
});

const isDescribed = onceForEach(({ fields }) => fields.some(({ key }) => properties.has(key, "describes")));
