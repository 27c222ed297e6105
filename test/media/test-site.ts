import { onTestFinished } from "vitest";
import { type Site, type SiteOptions, startSite } from "./site.ts";
import type { Resources } from "./resources.ts";

/** Registers what ends with the test; a test that runs beside others passes that of its context. */
export type WhenOver = (end: () => PromiseLike<void> | void) => void;

/** Starts a site as `startSite` does; it is closed after the test. */
export async function startTestSite(
  resources: Resources,
  options: SiteOptions = {},
  whenOver: WhenOver = onTestFinished,
): Promise<Site> {
  const site = await startSite(resources, options);
  whenOver(() => site.close());
  return site;
}
