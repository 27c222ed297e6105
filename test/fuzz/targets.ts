import { m3u8 } from "./m3u8.ts";
import { mpd } from "./mpd.ts";
import { pageTarget } from "./page.ts";
import { bodyTarget, urlTarget } from "./requests.ts";
import type { FuzzTarget } from "./target.ts";

export const targets: readonly FuzzTarget[] = [m3u8, mpd, pageTarget, urlTarget, bodyTarget];
