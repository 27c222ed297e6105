import { mediaTypeOf } from "../../../parsers/media-type.ts";
import type { Steps } from "../../../parsers/steps.ts";
import type { Resource } from "../metadata.ts";
import { type Beside, readBeside, resourceOf } from "./beside.ts";
import { type Data, isTag, namesFile } from "./data.ts";
import { ownDurationOf, titlesOf } from "./item.ts";
import { createExclusions, type Exclusion, isMediumName, mayBeUrl, stricterOf } from "./names.ts";

/** One medium that the page's scripts and tags name, in its variants. */
export interface Candidate {
  /** The object that describes it, with its title, duration and the like; else the one that has its URL. */
  readonly item: Data;
  readonly resources: Resource[];
  /** Files to download: they are the medium's only if no player plays others. */
  readonly downloads: Resource[];
  /** Why names exclude it. */
  readonly exclusion: Exclusion;
}

const maxResources = 2_000;
const maxVariants = 200;
const maxParents = 50;
/** How much the durations of the variants of one medium may differ, seconds. */
const maxDurationRange = 5;

/** The name of a list of one medium's variants. Elements of any other list are separate media. */
const variants =
  /source|src|file|level|bitrate|qualit|rendition|representation|adaptation|stream|variant|format|encoding|resolution|download|transcod|progressive|mp4|webm|hls|dash|h26|flavor|asset|ur[li]|playback|delivery|cdn|manifest|media(?:collection|array)?$|versions?$|definition/i;
/** The name of a field that describes a medium as a whole. */
const descriptive =
  /^(?:(?:video|media|clip|episode|content|item|asset|entry)?_?(?:tit(?:le|el|re|ulo|olo)|headline|caption|id|guid|duration|length|slug)|name|poster|image|thumb\w*|description|tracks)$/i;

/** Returns the media that `roots` name, in page order. The same URL twice is of one medium. */
export function* findCandidates(roots: readonly Data[], base: URL): Steps<Candidate[]> {
  const byItem = new Map<Data, Map<Exclusion, Candidate>>();
  const byUrl = new Map<string, Candidate>();
  const found = new Set<Candidate>();
  const exclusions = createExclusions();
  const linkItems = new Map<string, Data>();
  /** Links to files whose names differ only in quality lead to one medium. */
  const linkItem = (data: Data, url: URL): Data => {
    const name = nameWithoutQuality(url);
    const item = linkItems.get(name) ?? data;
    linkItems.set(name, item);
    return item;
  };
  const lists = new Map<Data, boolean>();
  const areMedia = (list: Data): boolean => {
    const known = lists.get(list) ?? isListOfMedia(list);
    lists.set(list, known);
    return known;
  };
  const pending = roots.toReversed();
  for (let data = pending.pop(); data !== undefined; data = pending.pop()) {
    yield;
    let common: { beside: Beside; exclusion: Exclusion; item: Data } | null = null;
    const children: Data[] = [];
    for (const { key, value } of data.fields) {
      if (byUrl.size >= maxResources) return [...found].map(completed);
      if (typeof value !== "string") {
        if (value.isMarked) children.push(value);
        continue;
      }
      if (!isMediumName(key, data) && !isUnnamedFileUrl(value, data)) continue;
      for (const { url, label } of urlsIn(value)) {
        if (!mayBeUrl(key, url)) continue;
        yield;
        common ??= {
          beside: readBeside(data),
          exclusion: exclusions.ofData(data),
          item: itemOf(data, areMedia),
        };
        const beside = label === null ? common.beside : { ...common.beside, label };
        const resource = resourceOf(key, url, beside, base);
        if (resource === null) continue;
        const exclusion = stricterOf(common.exclusion, exclusions.ofField(key, resource.url));
        const id = `${exclusion} ${resource.url.href}`;
        const known = byUrl.get(id);
        const isForDownload = isDownload(key, data);
        const item = isForDownload && isTag(data) ? linkItem(data, resource.url) : common.item;
        const candidate = known ?? candidateAt(item, exclusion, byItem);
        found.add(candidate);
        byUrl.set(id, candidate);
        const list = isForDownload ? candidate.downloads : candidate.resources;
        if (known === undefined && list.length < maxVariants) list.push(resource);
      }
    }
    pending.push(...children.toReversed());
  }
  return [...found].map(completed);
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

/** Whether it is the absolute URL of a usual file. Its field may have any name if no other one is named as a medium's. */
function isUnnamedFileUrl(text: string, data: Data): boolean {
  if (!/^https?:\/\/[^\s"'<>]{1,1000}\.(?:m3u8|mpd|mp4|m4v|webm)(?:[?#]|$)/i.test(text))
    return false;
  return !data.fields.some(
    ({ key, value }) => typeof value === "string" && isMediumName(key, data) && namesFile(value),
  );
}

/** Returns the host and path of a file without its extension and its quality. */
function nameWithoutQuality({ host, pathname }: URL): string {
  const quality =
    /[-_./](?:(?:144|240|360|480|540|576|720|1080|1440|2160)p?|\d{3,4}p|[48]k|hd|sd|hq|lq|low|medium|high)(?=[-_./]|$)/gi;
  return host + pathname.replace(/\.\w{2,4}$/, "").replace(quality, "");
}

/** Completes a candidate: if it has a manifest, drops URLs without an extension, which are of the manifest's parts. */
function completed(candidate: Candidate): Candidate {
  const all = candidate.resources.length > 0 ? candidate.resources : candidate.downloads;
  const resources = all.some(isManifest)
    ? all.filter((each) => isManifest(each) || namesFile(each.url.pathname))
    : all;
  return { ...candidate, resources };
}

function isManifest({ type, url }: Resource): boolean {
  const { kind } = mediaTypeOf(type, url);
  return kind === "hls" || kind === "dash";
}

function isDownload(key: string, data: Data): boolean {
  return [key, data.name, data.parent?.name ?? ""].some((name) => /download/i.test(name));
}

function candidateAt(
  item: Data,
  exclusion: Exclusion,
  byItem: Map<Data, Map<Exclusion, Candidate>>,
): Candidate {
  const byExclusion = byItem.get(item) ?? new Map<Exclusion, Candidate>();
  const candidate = byExclusion.get(exclusion) ?? { item, resources: [], downloads: [], exclusion };
  byItem.set(item, byExclusion.set(exclusion, candidate));
  return candidate;
}

/** Returns the object that describes the medium whose URL `data` has. */
function itemOf(data: Data, areMedia: (list: Data) => boolean): Data {
  let item = data;
  for (let n = 0; n < maxParents; n++) {
    const { parent, kind, name } = item;
    if (parent === null || kind === "block") return item;
    const isElement = kind === "object" && parent.kind === "array";
    const isVariant =
      variants.test(isElement ? parent.name : name) && !(isElement && areMedia(parent));
    if (kind === "object" && !isVariant && (isElement || isDescribed(item))) return item;
    // A variable's value or an argument: nothing around it describes it.
    if (parent.kind === "block") return isVariant || kind === "array" ? parent : item;
    item = parent;
  }
  return item;
}

/** Whether elements of the list have titles or durations that differ: they are media, not variants of one. */
function isListOfMedia({ fields }: Data): boolean {
  const elements = fields
    .slice(0, maxVariants)
    .flatMap(({ value }) => (typeof value === "string" ? [] : value));
  const [first] = elements;
  // Few lists of variants need to be looked at further.
  if (first === undefined || (titlesOf(first).length === 0 && ownDurationOf(first) === null))
    return false;
  const titles = elements.flatMap((each) => titlesOf(each).slice(0, 1));
  const durations = elements.flatMap((each) => ownDurationOf(each) ?? []);
  const range = Math.max(...durations) - Math.min(...durations);
  return new Set(titles).size > 1 || range > maxDurationRange;
}

function isDescribed({ fields }: Data): boolean {
  return fields.some(({ key }) => descriptive.test(key));
}
