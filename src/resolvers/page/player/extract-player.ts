import type { Steps } from "../../../parsers/steps.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { parseUrls } from "../../../parsers/url.ts";
import type { PageSource } from "../markup/charset.ts";
import { type Metadata, type Resource, thumbnailsAt } from "../metadata.ts";
import { findCandidates } from "./candidates.ts";
import { choosePlayer, type PageFacts } from "./choose-player.ts";
import { findData } from "./find-data.ts";
import { describeItem, postersOf, subtitlesOf } from "./item.ts";

/**
 * Extracts what a page's players are set up with: the medium that is the page's own, as its scripts and
 * tags name it. Returns {} if there is none.
 */
export function* extractPlayer(source: PageSource, page: PageFacts, base: URL): Steps<Metadata> {
  const candidates = yield* findCandidates(yield* findData(source), base);
  const chosen = yield* choosePlayer(candidates, page);
  if (chosen === null) return {};
  const { item, resources } = chosen;
  return {
    // Of media that are equal otherwise, the adaptive ones have all qualities.
    resources: resources.toSorted((a, b) => Number(isAdaptive(b)) - Number(isAdaptive(a))),
    duration: describeItem(item).duration,
    thumbnails: parseUrls(postersOf(item).slice(0, 5), base).flatMap((url) => thumbnailsAt(url)),
    subtitles: subtitlesOf(item, base),
  };
}

function isAdaptive({ type, url }: Resource): boolean {
  return ["hls", "dash"].includes(mediaTypeOf(type, url).kind);
}
