import { parseQuality } from "../../../parsers/quantities.ts";
import type { Exclusion } from "../choice/choose-medium.ts";
import { doubtfulFolders, names, properties, type Property } from "../lexicon/words.ts";
import { type Data, onceForEach } from "../scripts/data.ts";
import { isDigit } from "../scripts/tokens.ts";

const maxParents = 12;
/** How many enclosing objects may have the settings of a loop. */
const maxLoopLevels = 3;

const medium = names.bitsOf("medium");
const quality = names.bitsOf("quality");
const never = names.bitsOf("never", "neverField");
const preview = names.bitsOf("preview", "previewField");
const other = names.bitsOf("other");
/** Of the name of a file, which may have other words by chance. */
const neverFile = names.bitsOf("never");
const previewFile = names.bitsOf("preview");

/** Whether the name of a field, with those of the objects around it, says that it is the URL of a medium. */
export function isMediumName(key: string, { name, parent }: Data): boolean {
  const roles = names.rolesIn(key);
  if ((roles & medium) !== 0) return true;
  if (isDigit(key.charCodeAt(0))) return parseQuality(key) !== null;
  if ((roles & quality) === 0) return false;
  return names.has(name, "medium") || names.has(parent?.name ?? "", "medium");
}

/** Whether the name says that it is the URL of a manifest. */
export function isManifestName(key: string, data: Data): boolean {
  if (names.has(key, "manifest")) return true;
  return properties.has(key, "anyUrl") && names.has(data.name, "manifest");
}

/** Whether a text may be a URL: an absolute one, or a path; fields with some names may have a path without a slash. */
export function mayBeUrl(key: string, value: string): boolean {
  if (value.length < 5 || unusual.test(value)) return false;
  const isComplete = /^(?:https?(?::\/\/|%3A%2F%2F)|\.{0,2}\/)/i.test(value);
  if (value.includes(" ")) return isComplete && /^[^?]{1,300}\.(?:m[34][uav]8?|mp[34]|webm)$/i.test(value);
  return isComplete || (properties.has(key, "path") && !/^[\w.+-]+:/.test(value));
}

/** What no URL has, and what a program puts a value into: `/%s/1.mp4`, `/:id.mp4`, `/[[id]].mp4`, `/*.mp4`. */
const unusual = /[\n\r\t{}<>|\\]|%s|\/:[a-z]|\[\[|\/\*\./i;

/** Returns why a name excludes a medium. */
export function exclusionOfName(name: string): Exclusion {
  const roles = names.rolesIn(name);
  if ((roles & never) !== 0) return "never";
  if ((roles & preview) !== 0) return "preview";
  return (roles & other) === 0 ? "none" : "other";
}

/** Returns why the names of an object and of those around it exclude its media, and their settings. */
export function exclusionOfData(data: Data): Exclusion {
  let exclusion: Exclusion = "none";
  let next: Data | null = data;
  for (let n = 0; next !== null && n < maxParents; n++) {
    exclusion = stricterOf(exclusion, exclusionOfName(next.name));
    if (n < maxLoopLevels && isSilentLoop(next)) exclusion = stricterOf(exclusion, "other");
    next = next.parent;
  }
  return exclusion;
}

/** Returns why the name of a field or that of its file excludes a medium. */
export function exclusionOfField(key: string, { pathname }: URL): Exclusion {
  const [file = "", ...folders] = pathname.slice(0, maxPathLength).split("/").toReversed();
  const roles = names.rolesIn(file);
  if ((roles & previewFile) !== 0) return stricterOf(exclusionOfName(key), "preview");
  const isDoubtful = (roles & neverFile) !== 0 || folders.some((folder) => doubtfulFolders.has(folder.toLowerCase()));
  return stricterOf(exclusionOfName(key), isDoubtful ? "doubtful" : "none");
}
const maxPathLength = 1_000;

const strictness: readonly Exclusion[] = ["none", "doubtful", "other", "preview", "never"];

/** Returns the one of both that excludes more. */
export function stricterOf(a: Exclusion, b: Exclusion): Exclusion {
  return strictness.indexOf(a) > strictness.indexOf(b) ? a : b;
}

/** Whether its settings are those of a part of the page's design. */
const isSilentLoop = onceForEach(({ fields }) => {
  const isOn = (property: Property) =>
    fields.some(({ key, value }) => value === "true" && properties.has(key, property));
  return isOn("loop") && isOn("muted");
});
