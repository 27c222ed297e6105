import type { Attributes } from "./attributes.ts";

const background = /background|(?:^|[^a-z])(?:bg|vbg|vidbg|bgvideo)(?:[^a-z]|$)/i;

/**
 * Whether a tag is part of the page's design: named as a background, or a loop without controls that is muted or starts
 * by itself.
 */
export function isDecoration(name: string, attributes: Attributes): boolean {
  const is = (state: RegExp) =>
    [...attributes].some(([key, value]) => state.test(key) && value !== "false");
  if (is(/^controls$/)) return false;
  const isLoop = is(/(?:^|-)loop$/);
  if (isLoop && (is(/(?:^|-)muted?$/) || is(/(?:^|-)autoplay$/))) return true;
  const about = [name, attributes.get("id"), attributes.get("class")].join(" ");
  return background.test(about.slice(0, 1_000));
}
