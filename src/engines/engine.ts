import type { FileWarning } from "../model/file-warnings.ts";
import type { Additions, TextTrack } from "../remux/additions.ts";
import type { MediaRange } from "../remux/samples.ts";
import type { HostPauses } from "../net/host-pauses.ts";
import type { MaxSpeeds, SpeedLimit } from "../net/speed-limit.ts";
import type { Subtitle } from "../model/entry.ts";
import type { DownloadFormat } from "../model/page-info.ts";
import type { Progress } from "../model/progress.ts";
import type { ResultFile, TaskOptions } from "../model/task.ts";

/**
 * Contract of an engine, which downloads a format as one playable file. It can be implemented from this
 * text alone; the suite in `test/contracts/engine.ts` checks every implementation.
 *
 * - **One file.** The media as published, without re-encoding: a progressive file unchanged; segments or
 *   several tracks as one MP4 with its index in front, or one WebM.
 * - **Several audio tracks.** Those of `job.otherAudio` come after the first ones, with the languages that their formats have;
 *   only the first is enabled. If the media that have the first one have several, `job.audioLanguages` chooses.
 * - **Tags.** What `job.description` says is written into the files that `job.embed` names, chapters and a picture too, and
 *   the picture is a file of its own. What of it cannot be had or written is left out.
 * - **Ranges.** With `job.ranges`, the file presents exactly these parts, rounded to the nearest frame, joined and in sync; it is an
 *   MP4. Chapters and subtitles are cut and moved along. A range ends with the media.
 * - **Subtitles.** Each of `job.subtitles` becomes a WebVTT and a SubRip file beside the medium, with the times of the file,
 *   and a track in it, unless `job.embed` is `none` or the file is as published. What cannot be had is a warning.
 * - **All or nothing.** A returned file is complete, has been read back, and has been flushed to the disk
 *   (fsync).
 * - **Warnings.** What was fetched is compared with what was written: samples, times, durations
 *   against the manifest. What differs is in `warnings`, or the download fails.
 * - **Resume.** Everything fetched stays in `job.folder`. A later `download` of the same format in the same
 *   folder resumes from it, also after the process was killed. If the server's content has changed, it
 *   restarts and never splices. A new query in a URL changes nothing. With another path or host, only
 *   bytes are used that the server confirms by their validator, their length and their last 4 KiB.
 * - **The guard.** Every byte comes through the guarded client: manifests, keys, segments, redirects.
 * - **What the site demands.** Every request for a format, whatever it is for, has the fields that
 *   `createSiteHeaders` makes of its `http_headers`, its `cookies` and `job.pageUrl`; what its manifest
 *   lists has them too. Cookies that responses set are sent until the download ends. Of a progressive file with
 *   `http_chunk_size`, each request is for at most that many bytes. `fragments` are downloaded like the segments of a manifest, which is then not read.
 * - **Speed.** All downloads together receive at most `maxSpeedBps` of media, and `maxSpeedPerHostBps` from each host, or what
 *   `speed` allows, in fair shares. Manifests and pictures are not limited. A download that waits for that is neither idle nor slow.
 * - **Pauses.** A host that has asked for a pause, whichever download it asked, is left alone by all. They wait for up to 30 s; if the
 *   pause is longer, they fail with `isUntried`.
 * - **Errors.** `ServiceError`: the client's (`address_blocked`, `upstream_*`), `format_unavailable` (the
 *   manifest no longer lists it, or no file can be made of it), `drm_protected`, `live_stream` (it is live
 *   and cannot be recorded), `too_large` (more than `job.maxBytes`), `disk_full`, `internal` (the engine
 *   crashed or ran out of memory; never `retryable`). `retryable`: a later run may succeed.
 * - **Abort.** When `signal` is aborted, the transfer stops within a second and the promise rejects with
 *   `signal.reason`. After the promise has settled, nothing in `job.folder` is touched.
 */
export interface Engine {
  /** Makes it likely that the next `download` need not wait for a start; default: there is nothing to start. */
  prepare?(): void;
  /** Downloads are independent and may run concurrently, each in its own folder. */
  download(job: DownloadJob, context: DownloadContext): Promise<Download>;
  /** Aborts running downloads and frees all resources; safe to call twice. */
  close(): Promise<void>;
}

/** What an engine may be created with. */
export interface EngineDeps extends MaxSpeeds {
  /** Private networks that may be fetched, in CIDR notation. */
  allowNetworks: readonly string[];
  /** Concurrent requests of one download to one host. */
  concurrentFragments: number;
  /** Longest wait for the next byte. */
  idleTimeoutMs: number;
  /** Least speed of a transfer, bytes per second averaged over 60 s; 0: any. */
  minSpeedBps: number;
  /** Disk space to keep free. */
  minFreeBytes: number;
  /** Environment variables of worker processes, which get no others: where CA certificates are. */
  environment: Readonly<Record<string, string>>;
}

/** What an engine shares with the rest of its process. */
export interface EngineShared {
  observer?: EngineObserver | undefined;
  /** Hosts that downloads leave alone, and add to; default: none yet. */
  pauses?: HostPauses | undefined;
  /** What all downloads may receive; default: what `EngineDeps` says. */
  speed?: SpeedLimit | undefined;
}

export interface EngineObserver {
  /** Called with the number of worker processes whenever it changes. */
  onProcesses(count: number): void;
  /** Called when a worker process ended during a download: it crashed, or exceeded a limit and was killed. */
  onDeath(cause: DeathCause): void;
  /** As `onBlocked` of an address guard; a worker process that was taken over may send any text. */
  onBlocked(reason: string): void;
}

type DeathCause = "crash" | "limit";

export interface DownloadJob {
  format: DownloadFormat;
  /**
   * Separate audio. Used if `format.acodec` is `"none"`; if it is `null`, only if `format` turns out to have no audio.
   */
  audio: DownloadFormat | null;
  /** What decides between the formats of a manifest if `format` turns out to be one: options of the task. */
  preference: FormatPreference;
  /** Further audio tracks of the file, in this order after the first one. */
  otherAudio: readonly DownloadFormat[];
  /**
   * Which audio tracks are taken of media that have several: `original`, the first of them; `all`; those in a language,
   * BCP 47. None, or none that is there: the first.
   */
  audioLanguages: readonly string[];
  /** The page that plays the media: browsers send its URL as `Referer`. */
  pageUrl: string;
  /** Leave out the video. */
  audioOnly: boolean;
  /** Opus, Vorbis, MP3 and FLAC become files of their own kinds, whichever container they came in, unless there is video that is not left out. */
  isAudioFile: boolean;
  description: MediaDescription;
  embed: Embedding;
  /** The parts that the file presents, joined, in order and apart, seconds from the first frame; none: the whole. */
  ranges: readonly MediaRange[];
  /** Subtitles, which become files beside the medium, and tracks in a file that is made. */
  subtitles: readonly WantedSubtitles[];
  /** Languages (BCP 47) of subtitles that may be tracks of the media themselves: those that `subtitles` lacks are taken there. */
  ownSubtitles: readonly string[] | "all";
  /** Exists; belongs to this download alone, across runs. */
  folder: string;
  /** Limit of the fetched bytes, and of the result. */
  maxBytes: number;
  /** How much of a live stream is recorded, seconds; 0: live streams are refused. */
  maxLiveS: number;
}

export type FormatPreference = Pick<TaskOptions, "max_height" | "preferred_codecs">;

/** What the page says of the media. */
export interface MediaDescription extends Pick<Additions, "tags" | "chapters"> {
  /** A title for media that have none of their own if the page states none; `null`: none. */
  name: string | null;
  /** URLs of its pictures, best first. */
  covers: readonly string[];
}

/** Subtitles in one language, for one purpose. */
export interface WantedSubtitles extends Omit<TextTrack, "cues"> {
  /** The places of the same words, to be tried in this order. */
  listings: readonly Subtitle[];
  /** Automatic captions that are taken if nothing but forced subtitles of this language can be read; default: none. */
  otherwise?: readonly WantedSubtitles[];
}

/** Which files get tags, chapters and a picture: those that are made, also progressive files as published, or none. */
export type Embedding = "made" | "all" | "none";

export interface DownloadContext {
  signal: AbortSignal;
  /**
   * Aborted when the recording of a live stream is to end: what was listed by then and can be had within 10 s
   * is the result, at least one segment. Changes nothing for other media.
   */
  finish?: AbortSignal;
  /** Called often, must be cheap; `stage` is `downloading` or `processing`. */
  onProgress(progress: DownloadProgress): void;
  /** Called when the download begins to wait for a host that is left alone, and when it no longer does. */
  onWaiting?: (isWaiting: boolean) => void;
}

/** Bytes on the disk, those of earlier runs included; `is_live`: `finish` would end it. */
export type DownloadProgress = Pick<Progress, "stage" | "downloaded_bytes" | "total_bytes" | "is_live" | "waiting_for">;

export interface MediaInfo {
  /** Without the dot: `mp4`, `webm`, `m4a` … */
  ext: string;
  mime_type: string;
  /** Seconds; `null` if the file does not state it. */
  duration: number | null;
  /** Pixels as displayed; `null` without video. */
  width: number | null;
  height: number | null;
}

/** A file that an engine has made, complete and flushed to the disk. */
export interface MadeFile {
  /** In `job.folder` or a folder of it. */
  path: string;
  /** Bytes. */
  size: number;
  /** Hexadecimal. */
  sha256: string;
}

/** A file beside the medium. */
export type OtherFile = MadeFile &
  Pick<MediaInfo, "ext" | "mime_type"> &
  Pick<ResultFile, "language" | "role" | "automatic"> & { kind: Exclude<ResultFile["kind"], "media"> };

/** A track of subtitles within media. */
export interface OwnSubtitles {
  /** BCP 47; `null`: unknown. */
  language: string | null;
  /** What people call it. */
  codec: string;
  /** It is text that can be read. */
  isText: boolean;
}

export interface Download extends MediaInfo, MadeFile {
  /** The tags in `job.audioLanguages` that were found in the media, and whose tracks the file has. */
  audioLanguages: readonly string[];
  /** Languages of the audio tracks of the media, as far as they state them: at most 100. */
  offeredLanguages: readonly string[];
  /** Tracks of subtitles in progressive files that were fetched; a file that is not as published has those that are text and in `job.ownSubtitles`. */
  ownSubtitles: readonly OwnSubtitles[];
  /** What was made beside the medium. */
  others: readonly OtherFile[];
  /** What differs between what was fetched and the file; empty: nothing. */
  warnings: readonly FileWarning[];
}
