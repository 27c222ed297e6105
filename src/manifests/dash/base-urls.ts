import type { Steps } from "../../parsers/steps.ts";

interface BaseUrl {
  text: string;
  /** `""` for one that it does not have. */
  fields: Record<"serviceLocation", string>;
}

/** An element that may have BaseURLs. */
export interface WithBaseUrls {
  /** Text of the BaseURL that is used; `""`: there is none. */
  baseUrl: string;
  /** All that it has, at most `maxBaseUrls`. */
  baseUrls: BaseUrl[];
  readonly children: readonly WithBaseUrls[];
}

/** Of one element; further ones are left out. */
export const maxBaseUrls = 64;

/**
 * Sets the `baseUrl` of an MPD and all elements in it to that of its BaseURLs that is at index `base`, or to the last one.
 * Those whose service location is one of the space-separated `defaultLocations` of content steering (ISO/IEC 23009-1
 * annex K, ETSI TS 103 998) come first, in the order of that list; all others are in the order of the MPD.
 */
export function* chooseBaseUrls(mpd: WithBaseUrls, base: number, defaultLocations: string): Steps<void> {
  const locations = [...new Set(defaultLocations.split(/\s+/).filter((name) => name !== ""))].slice(0, maxBaseUrls);
  const ranks = new Map(locations.map((location, rank) => [location, rank]));
  const rankOf = ({ fields }: BaseUrl) => ranks.get(fields.serviceLocation.trim()) ?? locations.length;
  const choose = (element: WithBaseUrls): void => {
    const ordered = element.baseUrls.toSorted((a, b) => rankOf(a) - rankOf(b));
    element.baseUrl = ordered[Math.min(base, ordered.length - 1)]?.text ?? "";
  };
  choose(mpd);
  for (const period of mpd.children) {
    choose(period);
    for (const set of period.children) {
      choose(set);
      for (const representation of set.children) choose(representation);
      yield;
    }
  }
}
