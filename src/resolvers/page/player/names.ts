import type { Data } from "./data.ts";

/** `never`: an advertisement, captions, part of the site's design; `aside`: a preview, another video. */
export type Bar = "none" | "aside" | "never";

const maxParents = 12;

const mediumName =
  /src|source|file|ur[li]|stream|video|media|audio|hls|dash|m3u8|mpd|mp4|webm|mp3|manifest|master|playlist|movie|clip|play|href|link|download|contents?$/i;
const qualityName =
  /^(?:low|medium|high|sd|hd|uhd|hq|lq|auto|adaptive|default|original|mobile|desktop)$/i;
const heightName = /^\d{3,4}p?$/i;
/** Under these names a path may stand that has no slash at its start. */
const addressName = /^(?:file|src|source|url|video|stream|hls|dash|mp4|webm|mp3)$/i;
const manifestName = /^(?:hls|dash|m3u8|mpd)|(?:hls|dash|m3u8|mpd)(?:[-_]?ur[li]|[-_]?src)?$/i;

/** It says nothing itself: the name of what it is in counts. */
const plainName = /^(?:ur[li]|src|file|stream|href|default|auto)$/i;

const never =
  /promo(?!te)|upsell|paywall|pre_?roll|mid_?roll|post_?roll|vast|vpaid|advert|sponsor|commercial|caption|subtitle|thumb|poster|sprite|storyboard|bumper|background|hover|logo|placeholder/i;
const neverWords = new Set("ad ads adtag adurl bg sfx sound sounds".split(" "));
const aside =
  /preview|teaser|trailer|related|recommend|suggest|up_?next|similar|popular|trending|latest|more_?videos|sidebar|carousel|sample/i;
const asideWords = new Set("next prev previous other others more intro outro".split(" "));

/** Whether the name of a field, with those of what it is in, says that it is the address of a medium. */
export function isMediumName(key: string, { name, parent }: Data): boolean {
  if (mediumName.test(key) || heightName.test(key)) return true;
  return qualityName.test(key) && mediumName.test(`${name} ${parent?.name ?? ""}`);
}

/** Whether a text may be an address: an absolute URL, or a path; under some names one without a slash. */
export function isAddress(key: string, value: string): boolean {
  if (value.length < 5 || /[\s{}<>|\\]/.test(value)) return false;
  if (/^(?:https?:\/\/|\.{0,2}\/)/i.test(value)) return true;
  return addressName.test(key) && !/^[\w.+-]+:/.test(value);
}

/** Whether the name says that it is the address of a manifest. */
export function isManifestName(key: string, data: Data): boolean {
  return manifestName.test(key) || (plainName.test(key) && manifestName.test(data.name));
}

/** Tells what names speak against the media that they belong to; remembers them. */
export function createBars(): { ofData(data: Data): Bar; ofField(key: string, url: URL): Bar } {
  const known = new Map<string, Bar>();
  const ofName = (name: string): Bar => {
    const bar = known.get(name) ?? barOfName(name);
    known.set(name, bar);
    return bar;
  };
  return {
    ofData(data) {
      let bar: Bar = "none";
      let next: Data | null = data;
      for (let n = 0; next !== null && n < maxParents; n++) {
        bar = worseOf(bar, ofName(next.name));
        next = next.parent;
      }
      return bar;
    },
    ofField(key, { pathname }) {
      const bar = ofName(key);
      const file = pathname.slice(pathname.lastIndexOf("/") + 1).slice(0, 300);
      return bar === "none" && (never.test(file) || /preview|teaser/i.test(file)) ? "aside" : bar;
    },
  };
}

export function worseOf(a: Bar, b: Bar): Bar {
  if (a === "never" || b === "never") return "never";
  return a === "none" ? b : a;
}

function barOfName(name: string): Bar {
  const words = wordsOf(name.slice(0, 300));
  if (never.test(name) || words.some((word) => neverWords.has(word))) return "never";
  return aside.test(name) || words.some((word) => asideWords.has(word)) ? "aside" : "none";
}

/** Returns the words of a name such as `adTagUrl` or `next_video`, in lower case. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])|([A-Z])([A-Z][a-z])/g, "$1$3 $2$4")
    .toLowerCase()
    .split(/[^a-z\d]+/);
}
