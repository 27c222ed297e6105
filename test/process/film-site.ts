import { readMedium } from "../media/rendition.ts";
import { resource, type Resources } from "../media/resources.ts";
import type { Site, SiteOptions } from "../media/site.ts";
import { startTestSite, type WhenOver } from "../media/test-site.ts";

export const film = readMedium("index-first.mp4");
const films: Resources = new Map([["film.mp4", resource("video/mp4", film)]]);

/** Opens a site with `film` at `film.mp4`; closed after the test. */
export function openSite(options?: SiteOptions, whenOver?: WhenOver): Promise<Site> {
  return startTestSite(films, options, whenOver);
}
