import { containerTargets } from "./containers.ts";
import { growthTarget } from "./growth/mixtures.ts";
import { m3u8, m3u8Segments } from "./m3u8.ts";
import { mpd, mpdSegments } from "./mpd.ts";
import { mediaTarget } from "./media.ts";
import { playlistTarget } from "./playlists.ts";
import { pageTarget } from "./page.ts";
import { bodyTarget, urlTarget } from "./requests.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { streamsTarget } from "./streams/target.ts";
import type { FuzzTarget } from "./target.ts";

export const targets: readonly FuzzTarget[] = [
  m3u8,
  m3u8Segments,
  mpd,
  mpdSegments,
  mediaTarget,
  ...containerTargets,
  ...(hasFfmpeg ? [streamsTarget] : []),
  playlistTarget,
  pageTarget,
  growthTarget,
  urlTarget,
  bodyTarget,
];
