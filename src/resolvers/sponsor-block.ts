import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { startDeadline } from "../async/deadline.ts";
import { ServiceError } from "../model/errors.ts";
import type { PageInfo } from "../model/page-info.ts";
import { parseJson } from "../model/schema.ts";
import type { SkipCategory } from "../model/task.ts";
import type { HttpClient } from "../net/client.ts";

/** A part of a video that viewers may not want, seconds. */
export interface SkipSegment {
  startS: number;
  endS: number;
  category: SkipCategory;
}

/**
 * Returns the segments of these categories in a video; none if the site of the page has no such segments.
 *
 * @throws ServiceError of the client; `upstream_invalid`, `unavailable`; `signal.reason`
 */
export type FindSkips = (
  page: Pick<PageInfo, "extractor" | "video_id" | "duration">,
  categories: readonly SkipCategory[],
  signal: AbortSignal,
) => Promise<SkipSegment[]>;

/** Responses have some 100 kB. They are parsed at once, and the worst JSON of this length takes less than 0.1 s. */
const maxBytes = 512 << 10;
const timeoutMs = 10_000;
/** Of a video. No video has more, and each one takes time to be cut out. */
const maxSegments = 300;
/** Fewer votes: users say that it is wrong. */
const leastVotes = -2;

/** Part of the response of `/api/skipSegments/<prefix>` (SponsorBlock's API documentation). */
const SkipSegmentsResponse = Type.Array(
  Type.Object({
    videoID: Type.String(),
    segments: Type.Array(
      Type.Object({
        category: Type.String(),
        segment: Type.Tuple([Type.Number(), Type.Number()]),
        actionType: Type.Optional(Type.String()),
        votes: Type.Optional(Type.Number()),
        videoDuration: Type.Optional(Type.Number()),
      }),
    ),
  }),
);

/** Asks the SponsorBlock service at `base`, which learns 4 digits of the hash of a video's id; empty: there is none. */
export function createSponsorBlock(client: HttpClient, base: string): FindSkips {
  return async ({ extractor, video_id: id, duration }, categories, signal) => {
    if (extractor !== "Youtube" || id === undefined) return [];
    if (base === "") throw new ServiceError("unavailable", "SPONSORBLOCK_URL is empty");
    const prefix = createHash("sha256").update(id).digest("hex").slice(0, 4);
    const url = new URL(`${base.replace(/\/+$/, "")}/api/skipSegments/${prefix}`);
    url.searchParams.set("categories", JSON.stringify(categories));
    url.searchParams.set("actionTypes", '["skip"]');
    url.searchParams.set("service", "YouTube");
    using deadline = startDeadline(signal, timeoutMs, "the request to SponsorBlock");
    const response = await ask(client, url, deadline.signal);
    const own = response.find(({ videoID }) => videoID === id)?.segments ?? [];
    if (own.length > maxSegments) {
      const message = `SponsorBlock lists ${own.length} segments of the video, the limit is ${maxSegments}`;
      throw new ServiceError("upstream_invalid", message);
    }
    return own
      .filter((found) => categories.some((category) => category === found.category))
      .filter(({ actionType = "skip", votes = 0 }) => actionType === "skip" && votes >= leastVotes)
      .filter(({ segment: [startS, endS] }) => startS >= 0 && endS > startS)
      .filter((found) => isOfThisVersion(found, duration))
      .map(({ category, segment: [startS, endS] }) => ({ category: category as SkipCategory, startS, endS }));
  };
}

type Segment = Static<typeof SkipSegmentsResponse>[number]["segments"][number];

/** Videos are cut after they were published; segments of the version before are at other places. */
const maxDriftS = 2;

function isOfThisVersion({ videoDuration = 0 }: Segment, durationS: number | null): boolean {
  return durationS === null || videoDuration === 0 || Math.abs(videoDuration - durationS) <= maxDriftS;
}

async function ask(client: HttpClient, url: URL, signal: AbortSignal): Promise<Static<typeof SkipSegmentsResponse>> {
  try {
    const { body } = await client.get(url, { signal, maxBytes, accept: "application/json" });
    const found = parseJson(await text(body));
    if (Value.Check(SkipSegmentsResponse, found)) return found;
    throw new ServiceError("upstream_invalid", "the response has another shape than SponsorBlock's API documents");
  } catch (error) {
    if (error instanceof ServiceError && error.upstreamStatus === 404) return [];
    throw error;
  }
}
