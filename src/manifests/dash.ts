import { listDashFormats } from "./dash-formats.ts";
import { presentationDuration } from "./dash-periods.ts";
import { readMpd } from "./dash-xml.ts";
import type { Manifest } from "./manifest.ts";

/**
 * Reads a DASH MPD (ISO/IEC 23009-1) that was found at `url`.
 *
 * One format per Representation of pictures or sound; one that is alike but for its id in a further
 * Period continues that of the Period before and is not listed again. A Representation that is one
 * file gives that file's address and protocol `https`, all others the MPD's. Text becomes
 * subtitles, also text in segments (with the MPD's address); image tracks are left out, and so is
 * what is not at an http(s) address. Linear in the length of `text`.
 *
 * @throws ServiceError `upstream_invalid` where the root element is not MPD, elements nest deeper
 * than 64, or there are more than 4 Mi characters.
 */
export function readDash(text: string, url: URL): Manifest {
  const { root } = readMpd(text, url);
  const { listed, subtitles } = listDashFormats(root, url);
  const isLive = root.attributes.get("type") === "dynamic";
  return {
    formats: listed.map(({ format }) => format),
    subtitles,
    duration: presentationDuration(root, isLive),
    live_status: isLive ? "is_live" : "not_live",
  };
}
