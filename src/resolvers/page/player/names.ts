import type { Data } from "./data.ts";

/**
 * Why names exclude a medium, the least strict first. `doubtful`: only the name of its file or folder does; `other`: it is
 * not the page's; `preview`: it is a part of one; `never`: it is an advertisement, captions or part of the site's design.
 */
const exclusions = ["none", "doubtful", "other", "preview", "never"] as const;
export type Exclusion = (typeof exclusions)[number];

const maxParents = 12;
/** How many enclosing objects may have the settings of a loop. */
const maxLoopLevels = 3;

const mediumName =
  /src|source|file|ur[li]|stream|video|media|audio|hls|dash|m3u8|mpd|mp[34]|m4[av]|webm|og[av]|flv|manifest|master|playlist|movie|clip|play|href|link|load|enclosure|contents?$/i;
const qualityName =
  /^(?:low|medium|high|sd|hd|uhd|hq|lq|auto|adaptive|default|original|mobile|desktop)$/i;
const heightName = /^\d{3,4}p?$/i;
/** Fields with these names may have a path without a slash at its start. */
const pathName = /^(?:file|src|source|video|stream|hls|dash|mp4|webm|mp3)$/i;
const manifestName =
  /^(?:hls|dash|m3u8|mpd)|(?:hls|dash|m3u8|mpd)(?:[-_]?ur[li]|[-_]?src)?$|^loadSource$/i;

/** Names that say nothing by themselves: the name of the enclosing object counts. */
const plainName = /^(?:ur[li]|src|file|stream|href|default|auto)$/i;

const never =
  /promo(?!te|_items)|upsell|paywall|pre_?roll|mid_?roll|post_?roll|vast|vpaid|advert|sponsor|commercial|caption|subtitle|thumb|poster|snapshot|first_?frame|sprite|storyboard|trick_?play|i_?frame_?(?:only|playlist)|bumper|background|vidbg|hover|logo|placeholder|blank(?!et)|autoplay_?test|notification|text_?to_?speech|audio_?desc|sign_?lang/i;
const neverWords = new Set(
  "ad ads adv adtag adurl bg vbg sfx beep chime ding howl tts stat stats tracking beacon license licence".split(
    " ",
  ),
);
const preview = /preview|teaser|sample/i;
const other =
  /trailer|related|recommend|suggest|up_?next|similar|popular|trending|latest|most_?(?:watched|viewed|read)|more_?videos|sidebar|carousel|comments?$|reviews?$|repl(?:y|ies)$/i;
const otherWords = new Set(
  "next prev previous other others more intro outro cover hero banner slider slides rail picks creative campaign help tutorial tour soundtrack bgm".split(
    " ",
  ),
);
const previewFile = /preview|teaser/i;
/** Folders of files that are rarely a page's medium. */
const doubtfulFolder =
  /\/(?:sounds?|sfx|ads?|adverts?|sponsors?|promos?|bg|backgrounds?|thumbs?)\//i;

/** Whether the name of a field, with those of the objects around it, says that it is the URL of a medium. */
export function isMediumName(key: string, { name, parent }: Data): boolean {
  if (mediumName.test(key) || heightName.test(key)) return true;
  return qualityName.test(key) && mediumName.test(`${name} ${parent?.name ?? ""}`);
}

/** Whether a text may be a URL: an absolute one, or a path; fields with some names may have a path without a slash. */
export function mayBeUrl(key: string, value: string): boolean {
  if (value.length < 5 || /[\n\r\t{}<>|\\]/.test(value) || template.test(value)) return false;
  const isComplete = /^(?:https?(?::\/\/|%3A%2F%2F)|\.{0,2}\/)/i.test(value);
  if (value.includes(" "))
    return isComplete && /^[^?]{1,300}\.(?:m[34][uav]8?|mp[34]|webm)$/i.test(value);
  return isComplete || (pathName.test(key) && !/^[\w.+-]+:/.test(value));
}

/** What a program puts a value into: `/%s/1.mp4`, `/:id.mp4`, `/[[id]].mp4`, `/*.mp4`. */
const template = /%s|\/:[a-z]|\[\[|\/\*\./i;

/** Whether the name says that it is the URL of a manifest. */
export function isManifestName(key: string, data: Data): boolean {
  return manifestName.test(key) || (plainName.test(key) && manifestName.test(data.name));
}

/** Returns functions that tell why names exclude the media that they belong to; they remember the names. */
export function createExclusions(): {
  ofName(name: string): Exclusion;
  ofData(data: Data): Exclusion;
  ofField(key: string, url: URL): Exclusion;
} {
  const known = new Map<string, Exclusion>();
  const ofName = (name: string): Exclusion => {
    const exclusion = known.get(name) ?? exclusionOfName(name);
    known.set(name, exclusion);
    return exclusion;
  };
  return {
    ofName,
    ofData(data) {
      let exclusion: Exclusion = "none";
      let next: Data | null = data;
      for (let n = 0; next !== null && n < maxParents; n++) {
        exclusion = stricterOf(exclusion, ofName(next.name));
        if (n < maxLoopLevels && isSilentLoop(next)) exclusion = stricterOf(exclusion, "other");
        next = next.parent;
      }
      return exclusion;
    },
    ofField(key, url) {
      return stricterOf(ofName(key), exclusionOfUrl(url));
    },
  };
}

export function stricterOf(a: Exclusion, b: Exclusion): Exclusion {
  return exclusions.indexOf(a) > exclusions.indexOf(b) ? a : b;
}

/** Whether its settings are those of a part of the page's design. */
function isSilentLoop({ fields }: Data): boolean {
  const isOn = (name: RegExp) =>
    fields.some(({ key, value }) => value === "true" && name.test(key));
  return isOn(/^loop$/) && isOn(/^muted?$/);
}

function exclusionOfUrl({ pathname }: URL): Exclusion {
  const file = pathname.slice(pathname.lastIndexOf("/") + 1).slice(0, 300);
  if (previewFile.test(file)) return "preview";
  return never.test(file) || doubtfulFolder.test(pathname.slice(0, 1_000)) ? "doubtful" : "none";
}

/** Returns why a name excludes a medium. */
export function exclusionOfName(name: string): Exclusion {
  const words = wordsOf(name.slice(0, 300));
  if (never.test(name) || words.some((word) => neverWords.has(word))) return "never";
  if (preview.test(name)) return "preview";
  return other.test(name) || words.some((word) => otherWords.has(word)) ? "other" : "none";
}

/** Returns the words of a name such as `adTagUrl` or `next_video`, in lower case. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])|([A-Z])([A-Z][a-z])/g, "$1$3 $2$4")
    .toLowerCase()
    .split(/[^a-z\d]+/);
}
