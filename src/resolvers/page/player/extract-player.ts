import type { Steps } from "../../../parsers/steps.ts";
import { parseUrls } from "../../../parsers/url.ts";
import type { PageIdentity } from "../choice/candidate.ts";
import { chooseMedium } from "../choice/choose-medium.ts";
import type { Markup } from "../markup/markup.ts";
import { type Metadata, thumbnailsAt } from "../metadata.ts";
import { findCandidates } from "./candidates.ts";
import { createDescriber, type PlayerCandidate } from "./describe.ts";
import { findData } from "./find-data.ts";
import { durationOf, postersOf, subtitlesOf } from "./item.ts";

/**
 * Extracts what a page's players are set up with: the medium that is the page's own, as its scripts and
 * tags name it. Returns {} if there is none.
 */
export function* extractPlayer(
  markup: Pick<Markup, "playerSources" | "pageText">,
  page: PageIdentity,
  base: URL,
): Steps<Metadata> {
  const describe = createDescriber(page.urls[0] ?? base);
  const candidates: PlayerCandidate[] = [];
  for (const medium of yield* findCandidates(yield* findData(markup), base)) {
    yield;
    if (medium.exclusion !== "never") candidates.push(describe(medium));
  }
  const chosen = yield* chooseMedium(candidates, page);
  if (chosen === null) return {};
  const { item, resources } = chosen.medium;
  return {
    resources,
    duration: durationOf(item),
    thumbnails: parseUrls(postersOf(item).slice(0, 5), base).flatMap((url) => thumbnailsAt(url)),
    subtitles: subtitlesOf(item, base),
  };
}
