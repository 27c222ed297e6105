import type { Steps } from "../../../parsers/steps.ts";
import { parseUrls } from "../../../parsers/url.ts";
import type { Markup } from "../markup/markup.ts";
import { type Metadata, thumbnailsAt } from "../metadata.ts";
import { findCandidates } from "./candidates.ts";
import { choosePlayer, type PageFacts } from "./choose-player.ts";
import { findData } from "./find-data.ts";
import { durationOf, postersOf, subtitlesOf } from "./item.ts";

/**
 * Extracts what a page's players are set up with: the medium that is the page's own, as its scripts and
 * tags name it. Returns {} if there is none.
 */
export function* extractPlayer(
  markup: Pick<Markup, "playerSources" | "pageText">,
  page: PageFacts,
  base: URL,
): Steps<Metadata> {
  const candidates = yield* findCandidates(yield* findData(markup), base);
  if (candidates.length === 0) return {};
  const chosen = yield* choosePlayer(candidates, page);
  if (chosen === null) return {};
  const { item, resources } = chosen;
  return {
    resources,
    duration: durationOf(item),
    thumbnails: parseUrls(postersOf(item).slice(0, 5), base).flatMap((url) => thumbnailsAt(url)),
    subtitles: subtitlesOf(item, base),
  };
}
