import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Format } from "../../page-info.ts";
import type { DownloadJob } from "../engine.ts";
import type { FormatLocator, LocatedFormat, MediaLocation } from "./locate-format.ts";

/** What a download fetches. */
export interface Plan {
  main: Source;
  /** The separate audio. */
  audio: Source | null;
  /** `audio` is used only if `main` turns out to have none. */
  isAudioOptional: boolean;
  /** `main` is one file that can be returned unchanged. */
  isPassthrough: boolean;
  /** Differs if the bytes may differ: then nothing of an earlier run may be used. */
  identity: string;
}

export type SourceName = "main" | "audio";

interface SourceBase {
  name: SourceName;
  format: Format;
}

export type FileSource = SourceBase & Extract<MediaLocation, { kind: "file" }>;

export type SegmentSource = SourceBase &
  Extract<MediaLocation, { kind: "segments" }> & {
    /** Journal of a live stream's segments; `null`: it is not live. */
    liveJournalPath: string | null;
  };

/** The media of one format. */
export type Source = FileSource | SegmentSource;

/**
 * Locates the format of `job` and its separate audio.
 *
 * @throws ServiceError of `locate`
 */
export async function planDownload(
  job: Pick<DownloadJob, "format" | "audio" | "audioOnly" | "folder">,
  locate: FormatLocator,
): Promise<Plan> {
  const { audioOnly, folder } = job;
  const located = await locate(job.format);
  const chosen = audioOnly && located.audio !== null ? await locate(located.audio) : located;
  const audioFormat = audioOnly ? null : (job.audio ?? chosen.audio);
  const main = sourceOf("main", chosen, folder);
  const audio = audioFormat && sourceOf("audio", await locate(audioFormat), folder);
  return {
    main,
    audio,
    isAudioOptional: main.format.acodec !== "none",
    isPassthrough: main.kind === "file" && audio === null && job.format.manifest_url === null,
    identity: JSON.stringify([audioOnly, fingerprint(main), audio && fingerprint(audio)]),
  };
}

/** Returns seconds as the manifest states them; `null` for a file, a live stream and an unknown duration. */
export function sourceDuration(source: Source): number | null {
  if (source.kind === "file" || source.liveJournalPath !== null) return null;
  return source.list.segments.reduce((seconds, { durationS }) => seconds + durationS, 0) || null;
}

function sourceOf(name: SourceName, { format, media }: LocatedFormat, folder: string): Source {
  if (media.kind === "file") return { name, format, ...media };
  const hash = createHash("sha256").update(withoutQuery(format.url)).digest("hex").slice(0, 16);
  const path = join(folder, `${name}-${hash}.live`);
  // A download that began live stays live, even if the stream has ended since.
  const isLive = !media.list.hasEnded || existsSync(path);
  return { name, format, ...media, liveJournalPath: isLive ? path : null };
}

/**
 * Identifies content whatever tokens its URLs contain, by their paths, and a live stream by its own URL. The
 * format's properties distinguish sources whose URLs differ only in the query.
 */
function fingerprint(source: Source): string {
  const { format_id, height, tbr } = source.format;
  const hash = createHash("sha256").update(JSON.stringify([format_id, height, tbr]));
  if (source.kind === "file") hash.update(withoutQuery(source.url.href));
  else if (source.liveJournalPath !== null) hash.update(source.liveJournalPath);
  else {
    for (const { url, range, durationS } of source.list.segments) {
      hash.update(`${withoutQuery(url)} ${range?.offset} ${range?.length} ${durationS}\n`);
    }
  }
  return hash.digest("base64url");
}

function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
