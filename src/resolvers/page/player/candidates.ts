import { mediaTypeOf } from "../../../parsers/media-type.ts";
import type { Steps } from "../../../parsers/steps.ts";
import type { Resource } from "../metadata.ts";
import { type Beside, readBeside, resourceOf } from "./beside.ts";
import { type Data, isTag, namesFile } from "./data.ts";
import { ownDurationOf, titlesOf } from "./item.ts";
import { type Bar, createBars, isAddress, isMediumName, worseOf } from "./names.ts";

/** One medium that the page's scripts and tags name, in its variants. */
export interface Candidate {
  /** What describes it: has its title, duration and the like; else what holds its address. */
  readonly item: Data;
  readonly resources: Resource[];
  /** Files to download: they are the medium's only if no player plays others. */
  readonly downloads: Resource[];
  /** What the names around it tell against it. */
  readonly bar: Bar;
}

const maxResources = 2_000;
const maxVariants = 200;
const maxParents = 50;
/** Of the variants of one medium, seconds. */
const maxDurationRange = 5;

/** The name of a list of one medium's variants. Of other lists each element is a medium of its own. */
const variants =
  /source|src|file|level|bitrate|qualit|rendition|representation|adaptation|stream|variant|format|encoding|resolution|download|transcod|progressive|mp4|webm|hls|dash|h26|flavor|asset|ur[li]|playback|delivery|cdn|manifest|media(?:collection|array)?$|versions?$|definition/i;
/** A field that describes a medium as a whole. */
const descriptive =
  /^(?:(?:video|media|clip|episode|content|item|asset|entry)?_?(?:tit(?:le|el|re|ulo|olo)|headline|caption|id|guid|duration|length|slug)|name|poster|image|thumb\w*|description|tracks)$/i;

/** Returns the media that `roots` name, in page order. The same address twice is of one medium. */
export function* findCandidates(roots: readonly Data[], base: URL): Steps<Candidate[]> {
  const byPlace = new Map<Data, Map<Bar, Candidate>>();
  const byUrl = new Map<string, Candidate>();
  const found = new Set<Candidate>();
  const bars = createBars();
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
    let place: { beside: Beside; bar: Bar; item: Data } | null = null;
    const children: Data[] = [];
    for (const { key, value } of data.fields) {
      if (byUrl.size >= maxResources) return [...found].map(completed);
      if (typeof value !== "string") {
        if (value.isMarked) children.push(value);
        continue;
      }
      if (!isMediumName(key, data) && !isOnlyAddress(value, data)) continue;
      for (const { address, label } of addressesIn(value)) {
        if (!isAddress(key, address)) continue;
        yield;
        place ??= {
          beside: readBeside(data),
          bar: bars.ofData(data),
          item: itemOf(data, areMedia),
        };
        const beside = label === null ? place.beside : { ...place.beside, label };
        const resource = resourceOf(key, address, beside, base);
        if (resource === null) continue;
        const bar = worseOf(place.bar, bars.ofField(key, resource.url));
        const id = `${bar} ${resource.url.href}`;
        const known = byUrl.get(id);
        const isFile = isDownload(key, data);
        const item = isFile && isTag(data) ? linkItem(data, resource.url) : place.item;
        const candidate = known ?? candidateAt(item, bar, byPlace);
        found.add(candidate);
        byUrl.set(id, candidate);
        const list = isFile ? candidate.downloads : candidate.resources;
        if (known === undefined && list.length < maxVariants) list.push(resource);
      }
    }
    pending.push(...children.toReversed());
  }
  return [...found].map(completed);
}

/** Returns the addresses in a text: itself, or those of `[360p]https://…,[720p]https://…` or `https://… or https://…`. */
function addressesIn(text: string): { address: string; label: string | null }[] {
  if (!text.startsWith("[")) {
    const addresses = text.split(/(?:,| or )(?=https?:\/\/)/, maxVariants);
    return addresses.map((address) => ({ address, label: null }));
  }
  return text.split(/,(?=\[)/, maxVariants).flatMap((part) => {
    const [, label = "", address] = /^\[([^\]]{1,60})\](\S+)/.exec(part) ?? [];
    return address === undefined ? [] : [{ address, label }];
  });
}

/** Whether it is the absolute URL of a usual file: no name needs to say so, if no other field has such a name. */
function isOnlyAddress(text: string, data: Data): boolean {
  if (!/^https?:\/\/[^\s"'<>]{1,1000}\.(?:m3u8|mpd|mp4|m4v|webm)(?:[?#]|$)/i.test(text))
    return false;
  return !data.fields.some(
    ({ key, value }) => typeof value === "string" && isMediumName(key, data) && namesFile(value),
  );
}

/** Returns the address of a file without its extension, and without what tells of its quality. */
function nameWithoutQuality({ host, pathname }: URL): string {
  const quality =
    /[-_./](?:(?:144|240|360|480|540|576|720|1080|1440|2160)p?|\d{3,4}p|[48]k|hd|sd|hq|lq|low|medium|high)(?=[-_./]|$)/gi;
  return host + pathname.replace(/\.\w{2,4}$/, "").replace(quality, "");
}

/** Completes a candidate. Addresses without extension beside a manifest are of its parts. */
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

function candidateAt(item: Data, bar: Bar, byPlace: Map<Data, Map<Bar, Candidate>>): Candidate {
  const byBar = byPlace.get(item) ?? new Map<Bar, Candidate>();
  const candidate = byBar.get(bar) ?? { item, resources: [], downloads: [], bar };
  byPlace.set(item, byBar.set(bar, candidate));
  return candidate;
}

/** Returns what describes the medium whose address stands in `data`. */
function itemOf(data: Data, areMedia: (list: Data) => boolean): Data {
  let item = data;
  for (let n = 0; n < maxParents; n++) {
    const { parent, kind, name } = item;
    if (parent === null || kind === "block") return item;
    const isElement = kind === "object" && parent.kind === "array";
    const isVariant =
      variants.test(isElement ? parent.name : name) && !(isElement && areMedia(parent));
    if (kind === "object" && !isVariant && (isElement || isDescribed(item))) return item;
    // Nothing further out describes it: what is a variable's value or an argument stands for itself.
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
