import type { collectionWarnings, MemberCounts } from "../../model/collection.ts";
import type { FileWarningCode } from "../../model/file-warnings.ts";
import type { WaitReason } from "../../model/progress.ts";
import type { State, Task, TaskFile, TaskOptions } from "../../model/task.ts";
import {
  describeFailure,
  describeReason,
  formatBytes,
  formatDuration,
  formatPlace,
  formatPartOf,
  formatSpeed,
  formatTime,
  formatWait,
} from "../texts.ts";

/** The name of each state, as filter and in announcements. */
export const stateNames: Record<State, string> = {
  queued: "Waiting",
  running: "Running",
  succeeded: "Done",
  failed: "Failed",
  canceled: "Canceled",
};

/** Returns the title of the video, else that of its entry in a playlist, else the address of its page. */
export function taskTitle({ info, collection, url }: Task): string {
  return info?.title ?? collection?.entry?.title ?? url;
}

/** Returns the title, cut where it is too long for a sentence. */
export function clampTitle(title: string): string {
  return title.length > 100 ? `${title.slice(0, 99).toWellFormed()}…` : title;
}

/** Returns what is said when a task gets another state. */
export function describeTransition(task: Task): string {
  const { state, error } = task;
  return `${clampTitle(taskTitle(task))}: ${error === null ? `${stateNames[state]}.` : describeState(task)}`;
}

/** Returns how a task is doing, as one line; "" for one that is done, whose file says it. */
export function describeState(task: Task): string {
  const { state, error, file, removed_at, counts } = task;
  if (counts !== undefined) return describeCounts(counts, state);
  if (state === "running") return describeRun(task);
  if (state === "succeeded" && file !== null) return describeFile(file);
  // An event of an earlier release has no `removed_at`.
  if (state === "succeeded") return removed_at == null ? "Done." : `File removed · ${formatTime(removed_at)}`;
  if (state === "canceled") return "Canceled.";
  if (state === "failed") return error === null ? "Failed." : describeFailure(error);
  if (error === null) return "Waiting.";
  const at = task.retry_at === undefined ? "soon" : `at ${formatTime(task.retry_at)}`;
  return `${describeReason(error)} Next attempt ${at}.`;
}

/** Returns how the members of a collection are doing, "5 of 300 done · 2 running". */
function describeCounts(counts: MemberCounts, state: State): string {
  const total = sumOf(counts);
  if (total === 0) return state === "running" ? "Reading the list…" : "No entries.";
  const others = (["running", "queued", "failed", "canceled"] as const).filter((each) => counts[each] > 0);
  const parts = others.map((each) => `${counts[each]} ${stateNames[each].toLowerCase()}`);
  return [`${counts.succeeded} of ${total} done`, ...parts].join(" · ");
}

/** Returns how many members a collection has. */
export function sumOf(counts: MemberCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Why a running task gets on slowly or not at all. */
const waits: Record<WaitReason, string> = {
  speed: "waiting for the speed limit",
  host: "waiting, as the site wants a pause",
  library: "waiting for the library",
};

function describeRun(task: Task): string {
  const wait = task.progress?.waiting_for;
  const work = describeWork(task);
  return wait === undefined || !Object.hasOwn(waits, wait) ? work : `${work} · ${waits[wait]}`;
}

function describeWork({ progress, started_at, finish_requested }: Task): string {
  if (progress === null || progress.stage === "resolving") return "Reading the page…";
  const { stage, downloaded_bytes: bytes, total_bytes: total, speed, eta } = progress;
  const size = bytes === null ? [] : [formatBytes(bytes)];
  if (finish_requested === true) return ["Ending the recording", ...size].join(" · ");
  if (stage === "processing") return ["Writing the file", ...size].join(" · ");
  if (progress.is_live === true) {
    const since = started_at === null ? "" : ` since ${formatTime(started_at)}`;
    return [`Recording${since}`, ...size].join(" · ");
  }
  const parts = total === null || bytes === null ? size : [formatPartOf(bytes, total)];
  if (speed !== null) parts.push(formatSpeed(speed));
  if (eta !== null) parts.push(`${formatWait(eta)} left`);
  return parts.length === 0 ? "Downloading…" : parts.join(" · ");
}

function describeFile({ size, width, height, duration }: TaskFile): string {
  const parts = [formatBytes(size)];
  if (width !== null && height !== null) parts.push(`${width} × ${height}`);
  if (duration !== null) parts.push(formatDuration(duration));
  return parts.join(" · ");
}

/** Returns what is downloaded of the page, "at most 720p, audio only". */
export function describeOptions(options: TaskOptions): string {
  const { format_id: format, max_height: height, audio_only: isAudio, audio_languages: languages } = options;
  const { preferred_codecs: codecs = [], subtitles, ranges = [], skip = [], entries } = options;
  const parts = [
    ...(format === undefined ? [] : [`format ${format}`]),
    ...(height === undefined ? [] : [`at most ${height}p`]),
    ...(isAudio === true ? ["audio only"] : []),
  ];
  const extras = [
    ...(codecs.length === 0 || format !== undefined || isAudio === true ? [] : [`in ${codecs.join(", ")} if possible`]),
    ...(languages === undefined ? [] : [`audio: ${languages.join(", ")}`]),
    ...(subtitles === undefined || subtitles === false ? [] : ["subtitles"]),
    ...ranges.map(({ start, end }) => `${formatPlace(start)}–${end === null ? "" : formatPlace(end)}`).slice(0, 3),
    ...(ranges.length > 3 ? [`${ranges.length} parts`] : []),
    ...(skip.length === 0 ? [] : [`${options.skip_mode === "chapters" ? "chapters" : "without"}: ${skip.join(", ")}`]),
    ...(entries === undefined ? [] : [describeEntries(entries)]),
  ];
  return [parts.length === 0 ? "best format" : parts.join(", "), ...extras].join(", ");
}

function describeEntries(entries: NonNullable<TaskOptions["entries"]>): string {
  if (entries === "all") return "the whole list";
  return typeof entries === "string" ? `numbers ${entries}` : `${entries.length} of the list`;
}

const collectionSentences: Record<keyof typeof collectionWarnings, string> = {
  entries_limited: "The list has more entries than the service takes: the last ones are missing.",
  entries_missing: "Some entries that were asked for are not in the list.",
};

/** Returns each thing that differs between a collection and what was asked for as one sentence. */
export function describeCollectionWarnings({ warnings: given = [] }: Pick<Task, "warnings">): string[] {
  return given.map(({ code }) =>
    Object.hasOwn(collectionSentences, code)
      ? collectionSentences[code as keyof typeof collectionSentences]
      : "It differs from what was asked for.",
  );
}

const warnings: Record<FileWarningCode, string> = {
  frames_missing: "Parts of the video or the audio are missing.",
  gap: "The video or the audio has a gap.",
  duration_differs: "It is longer or shorter than the site says.",
  tracks_left: "The source has further audio tracks.",
  length_unknown: "Its end may be missing: the site did not say how long it is.",
  end_padding: "Some players play up to 0.1 s of padding at its end.",
  times_changed: "Some frames had wrong times, which were corrected.",
  stream_lost: "The recording ended early, as the live stream could not be read any more.",
  audio_missing: "A language that was asked for is missing.",
  not_embedded: "It lacks tags, chapters or a cover: they could not be had or written.",
  subtitles_missing: "Subtitles that were asked for are missing, or parts of them.",
  library_failed: "It could not be put into the library yet; this is tried again every minute.",
  skip_unavailable: "Nothing was left out, as the list of such parts was not available.",
  track_missing: "It lacks the video or the audio.",
  format_left: "Its quality is not the best one listed, which the site does not have or refuses.",
  too_high: "Its quality is higher than asked for, as the site did not say what it is.",
};

/** Returns each thing that is wrong with a file as one sentence. */
export function describeWarnings({ warnings: given = [] }: TaskFile): string[] {
  const sentences = given.map(({ code }) =>
    Object.hasOwn(warnings, code) ? warnings[code as FileWarningCode] : "It differs from what the site has.",
  );
  return [...new Set(sentences)];
}

/** Returns a shell command that saves the file at `url` under its own name; `withKey`: with the key in UNREEL_KEY. */
export function curlCommand(url: string, withKey: boolean): string {
  const key = withKey ? '-H "Authorization: Bearer $UNREEL_KEY" ' : "";
  return `curl -fOJ ${key}'${url.replaceAll("'", "'\\''")}'`;
}
