import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { upstreamAs } from "../../../model/errors.ts";
import type { HeadersFor } from "../../../net/client.ts";
import type { DownloadFormat } from "../../../model/page-info.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import type { DownloadJob } from "../../engine.ts";
import type { PartialMedia } from "../partial/partial-file.ts";
import type { FormatLocator, LocatedFormat, MediaLocation } from "./locate-format.ts";
import { withoutQuery } from "../parts/representation.ts";

/** What a download fetches. */
export interface Plan {
  sources: Sources;
  /** The only source is one file that can be returned unchanged. */
  isPassthrough: boolean;
  /** Differs if the bytes may differ: then nothing of an earlier run may be used. */
  identity: string;
}

export type SourceName = "main" | "audio" | `audio-${number}`;

/** `audio` replaces the audio of `main`, `fallback` if `main` turns out to have none; `further`: another audio track. */
export type SourceRole = "main" | "audio" | "fallback" | "further";

/** In the order of their audio tracks. */
type Sources = readonly [main: Source, ...audio: Source[]];

interface SourceBase {
  name: SourceName;
  role: SourceRole;
  format: DownloadFormat;
  /** Of every request. */
  headers: HeadersFor;
  /** What has been fetched for ranges of a source that is one file; `null`: that, or the selected segments, will be fetched. */
  part: PartialMedia | null;
}

export type FileSource = SourceBase & Extract<MediaLocation, { kind: "file" }>;

export type SegmentSource = SourceBase &
  Extract<MediaLocation, { kind: "segments" }> & {
    /** Journal of a live stream's segments; `null`: it is not live. */
    liveJournalPath: string | null;
    /** Indexes of the segments that are fetched; `null`: all. */
    selection: ReadonlySet<number> | null;
  };

/** The media of one format. */
export type Source = FileSource | SegmentSource;

/** Locates the format of `job` and its separate audio. @throws ServiceError of `locate` */
export async function planDownload(
  job: Pick<DownloadJob, "format" | "audio" | "otherAudio" | "audioOnly" | "folder">,
  locate: FormatLocator,
): Promise<Plan> {
  const { audioOnly, folder } = job;
  const located = await locate(job.format);
  const locateOwnAudio = async () => located.audio && (await locate(located.audio, located.headers));
  const chosen = (audioOnly ? await locateOwnAudio() : null) ?? located;
  const audioFormat = audioOnly ? null : await (job.audio ? locate(job.audio) : locateOwnAudio());
  const main = sourceOf("main", "main", chosen, folder);
  const audioRole = main.format.acodec === "none" ? "audio" : "fallback";
  const audio = audioFormat && sourceOf("audio", audioRole, audioFormat, folder);
  const others = await Promise.all(job.otherAudio.map((format) => locate(format)));
  const further = others.map((other, index) => sourceOf(`audio-${index + 1}`, "further", other, folder));
  const sources: Sources = [main, ...(audio === null ? [] : [audio]), ...further];
  // `null` instead of the separate audio: folders of earlier versions have it so.
  const fingerprints = [main, audio, ...further].map((source) => source && fingerprint(source));
  return readAtOnce({
    sources,
    isPassthrough: main.kind === "file" && sources.length === 1 && job.format.manifest_url === null,
    identity: JSON.stringify([audioOnly, ...fingerprints]),
  });
}

/** How often live playlists are read again at most. */
const maxReadings = 3;

/**
 * Reads the live playlists of several tracks again until none has lost its first segment meanwhile: of two that are read moments
 * apart, the second may begin a segment later.
 */
async function readAtOnce(plan: Plan): Promise<Plan> {
  if (plan.sources.filter(isLivePlaylist).length < 2) return plan;
  let latest = plan;
  for (let reading = 0; reading < maxReadings; reading += 1) {
    const again = await mapSources(latest, readAgain);
    if (again.sources.every((source, index) => firstSequence(source) === firstSequence(latest.sources[index]))) break;
    latest = again;
  }
  return latest;
}

/** Returns the source with its present list, or the one it has if that cannot be read for now. */
async function readAgain(source: Source): Promise<Source> {
  if (!isLivePlaylist(source)) return source;
  return { ...source, list: await source.reload().catch(upstreamAs(source.list)) };
}

const isLivePlaylist = (source: Source): source is SegmentSource =>
  isLiveSource(source) && source.format.protocol === "m3u8";

const firstSequence = (source: Source | undefined): number | undefined =>
  source?.kind === "segments" ? source.list.segments[0]?.sequence : undefined;

/** Returns the plan with other sources, which are made one after the other. */
export async function mapSources(plan: Plan, change: (source: Source) => Promise<Source>): Promise<Plan> {
  const [main, ...audio] = plan.sources;
  const changed: [Source, ...Source[]] = [await change(main)];
  for (const source of audio) changed.push(await change(source));
  return { ...plan, sources: changed };
}

/** Returns the kinds of tracks that the result must have by its format. An MPD says of which kind a set is even if it names no codecs. */
export function listedKinds({ sources }: Plan, audioOnly: boolean): TrackKind[] {
  const { vcodec, acodec, protocol } = sources[0].format;
  const hasVideo = !audioOnly && (vcodec === null ? protocol === "dash" : vcodec !== "none");
  const hasAudio = sources.some(({ name }) => name === "audio") || (acodec !== null && acodec !== "none");
  return [...(hasVideo ? ["video" as const] : []), ...(hasAudio ? ["audio" as const] : [])];
}

/** Returns the kinds of tracks that the result will have; `null` if the format does not say all. */
export function statedKinds(plan: Plan, audioOnly: boolean): TrackKind[] | null {
  const { vcodec, acodec } = plan.sources[0].format;
  return vcodec === null || acodec === null ? null : listedKinds(plan, audioOnly);
}

/** Returns the seconds that the manifest lists; `null` for a file, a live stream and an unknown duration. */
export function sourceDuration(source: Source): number | null {
  if (source.kind === "file" || isLiveSource(source)) return null;
  const { list, selection } = source;
  const selected = list.segments.filter((_, index) => selection?.has(index) !== false);
  return selected.reduce((seconds, { durationS }) => seconds + durationS, 0) || null;
}

/** Returns the URL of a source that is one file, also as the only segment of a list (SegmentBase of DASH); `null`: it is not. */
export function fileUrlOf(source: Source): URL | null {
  if (source.kind === "file") return source.url;
  const { list, liveJournalPath } = source;
  const [file, ...others] = list.segments;
  if (file === undefined || others.length > 0 || liveJournalPath !== null) return null;
  const isPlain = file.key === null && file.init === null && file.range === null && (list.gapsS ?? []).length === 0;
  return isPlain ? new URL(file.url) : null;
}

export function isLiveSource(source: Source): boolean {
  return source.kind === "segments" && source.liveJournalPath !== null;
}

function sourceOf(name: SourceName, role: SourceRole, located: LocatedFormat, folder: string): Source {
  const { format, headers, media } = located;
  const common = { name, role, format, headers, part: null };
  if (media.kind === "file") return { ...common, ...media };
  const hash = createHash("sha256").update(withoutQuery(new URL(format.url)));
  const path = join(folder, `${name}-${hash.digest("hex").slice(0, 16)}.live`);
  // A download that began live stays live, even if the stream has ended since.
  const isLive = !media.list.hasEnded || existsSync(path);
  return { ...common, ...media, liveJournalPath: isLive ? path : null, selection: null };
}

/**
 * Identifies content whatever its URLs are: the part store checks parts whose URLs have changed. The format's
 * properties distinguish sources whose URLs differ only in the query, its id only if they say too little: a
 * site may count its formats. A live stream is identified by its own URL.
 */
function fingerprint(source: Source): string {
  const { format_id, ext, width, height, fps, vcodec, acodec, tbr, language } = source.format;
  const isDistinct = height !== null || tbr !== null;
  const format = isDistinct ? [ext, width, height, fps, vcodec, acodec, tbr, language] : format_id;
  const hash = createHash("sha256").update(JSON.stringify([source.kind, format]));
  if (source.kind === "file") return hash.digest("base64url");
  if (source.liveJournalPath !== null) hash.update(source.liveJournalPath);
  else {
    for (const { range, durationS } of source.list.segments) {
      hash.update(`${range?.offset} ${range?.length} ${durationS}\n`);
    }
  }
  return hash.digest("base64url");
}
