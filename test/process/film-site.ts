import { onTestFinished } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { resource, type Resources } from "../media/resources.ts";
import { type Site, type SiteOptions, startSite } from "../media/site.ts";
import type { WhenOver } from "./test-cluster.ts";

export const film = readMedium("index-first.mp4");
const films: Resources = new Map([["film.mp4", resource("video/mp4", film)]]);

/** Opens a site with `film` at `film.mp4`; closed after the test. */
export async function openSite(options: SiteOptions = {}, whenOver: WhenOver = onTestFinished): Promise<Site> {
  const site = await startSite(films, options);
  whenOver(() => site.close());
  return site;
}
