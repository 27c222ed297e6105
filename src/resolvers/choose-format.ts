import { isDeepStrictEqual } from "node:util";
import { urlForMessage } from "../net/http-url.ts";
import { ServiceError } from "../model/errors.ts";
import {
  bestAudio,
  byQuality,
  createAudioFinder,
  hasAudio,
  hasVideo,
  isMuxable,
  isProgramme,
  type VideoCodec,
} from "../model/format-ranking.ts";
import type { DownloadFormat, Format, PageInfo } from "../model/page-info.ts";
import type { TaskOptions } from "../model/task.ts";

export interface FormatChoice {
  format: DownloadFormat;
  audio: DownloadFormat | null;
  /** The video is left out. */
  audioOnly: boolean;
}

/**
 * Chooses the format that a task's options ask for.
 *
 * - `before`, what an earlier run of the task has chosen: the same format and audio if they are still listed, without DRM
 *   and with the same protocol: by id, unless height, codecs, language or extension contradict it; else those that equal
 *   them in all of these and have the closest bit rate, at most 10 % apart. A `format_id` is found by itself alone.
 * - `format_id`: this format, whatever `max_height` is; with its separate audio if it has none itself.
 * - `audio_only`: the best audio-only format, in the page's language if there is one, unless the original is in a format with video, or these
 *   are only dubs, descriptions and the like;
 *   else the best format with audio, without its video.
 * - Otherwise the best format with video and audio: the programme before other versions, then by height, then bit rate, then muxed before separate
 *   audio, then the page's order. Video without any audio is chosen only if no format has both, audio only
 *   if no format has video.
 * - `max_height`: formats of at most this height, else those of unknown height.
 * - `preferred_codecs`: the codec counts before the height: the first of these, else an unknown one that may be one of these, else others. `format_id` and
 *   `audio_only` do not respect it.
 *
 * Formats with DRM are skipped if others match.
 *
 * @throws ServiceError, retryable only if a manifest lists nothing yet
 * - `no_media`: the page lists no format; `playlist`: it lists entries instead; `live_stream`: because the event has not begun
 * - `format_unavailable`: no listed format matches; `drm_protected`: all matching formats have DRM
 */
export function chooseFormat(info: PageInfo, options: TaskOptions, before: FormatChoice | null = null): FormatChoice {
  const { format_id, max_height, preferred_codecs, audio_only = false } = options;
  const again = before && format_id === undefined ? findAgain(before, info.formats) : undefined;
  if (again !== undefined) return again;
  assertMedia(info);
  const videos = audio_only ? [] : info.formats.filter(hasVideo);
  if (format_id === undefined && videos.length === 0) return bestAudioOnly(info);
  const audioOf = createAudioFinder(info);
  if (format_id !== undefined) return chooseById(info.formats, format_id, audio_only, audioOf);
  const within = max_height === undefined ? videos : withinHeight(videos, max_height);
  return bestVideo(withoutDrm(within), audioOf, preferred_codecs);
}

/** Returns what the options ask for; `null` if it is refused, or no page was read. */
export function chooseIfListed(info: PageInfo | null, options: TaskOptions): FormatChoice | null {
  try {
    return info && chooseFormat(info, options);
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

/** Returns what the options ask for of a page without the format of `before`; `null`: nothing of the same kind. */
export function chooseInstead(before: FormatChoice, left: PageInfo, options: TaskOptions): FormatChoice | null {
  const choice = chooseIfListed(left, options);
  return choice !== null && isSameKind(choice, before) ? choice : null;
}

/** Whether both are of the same version of a video, with audio or without. */
function isSameKind(a: FormatChoice, b: FormatChoice): boolean {
  const kindOf = ({ format, audio, audioOnly }: FormatChoice) => {
    const { acodec, roles = [] } = format;
    const { language, audio_role = null } = audio ?? format;
    return [hasVideo(format), audioOnly, audio === null && acodec === "none", language, audio_role, roles];
  };
  return isDeepStrictEqual(kindOf(a), kindOf(b));
}

/** Returns the formats of `before` among these; undefined if one of them is missing. */
function findAgain(before: FormatChoice, formats: readonly Format[]): FormatChoice | undefined {
  const format = findFormatAgain(before.format, formats);
  const audio = before.audio && findFormatAgain(before.audio, formats, format);
  return format && audio !== undefined ? { ...before, format, audio } : undefined;
}

/** Of equal ones, that of an audio group, its own or that of the video, comes first. */
function findFormatAgain(
  before: Format,
  formats: readonly Format[],
  { audio_group: group } = before,
): Format | undefined {
  const usable = formats.filter(({ has_drm, protocol }) => !has_drm && protocol === before.protocol);
  const sameId = usable.find(({ format_id }) => format_id === before.format_id);
  if (sameId !== undefined && identifying.every((name) => agrees(valueOf(sameId, name), valueOf(before, name)))) {
    return sameId;
  }
  const isOther = ({ audio_group }: Format) => Number(audio_group !== group);
  const [closest] = usable
    .filter((format) => identifying.every((name) => valueOf(format, name) === valueOf(before, name)))
    // The programme, or one version of it.
    .filter(({ roles = [] }) => String(roles) === String(before.roles ?? []))
    .filter((format) => rateRatio(format, before) <= maxRateRatio)
    .toSorted((a, b) => rateRatio(a, before) - rateRatio(b, before) || isOther(a) - isOther(b));
  return closest;
}

const identifying = ["height", "vcodec", "acodec", "language", "name", "ext", "audio_role"] as const;

const valueOf = (format: Format, name: (typeof identifying)[number]) => format[name] ?? null;

/** What a manifest says is unknown (null) while that cannot be read. */
function agrees(a: number | string | null, b: number | string | null): boolean {
  return a === b || a === null || b === null;
}

/** Sites may measure bit rates again. */
const maxRateRatio = 1.1;

function rateRatio(a: Format, b: Format): number {
  if (a.tbr === null || b.tbr === null) return 1;
  return Math.max(a.tbr, b.tbr) / Math.min(a.tbr, b.tbr);
}

function assertMedia(info: PageInfo): void {
  const { url, webpage_url, formats, live_status, sources, entries = [], entries_count, entries_next } = info;
  if (formats.length > 0) return;
  const page = url.slice(0, 200);
  const [entry] = entries;
  if (entry !== undefined) {
    const atLeast = entries_next === undefined ? "" : "at least ";
    const count = entries_count ?? `${atLeast}${entries.length}`;
    const how = `ask POST /tasks/ for them with "options": {"entries": "all"}, or take the URL of one, such as ${entry.url.slice(0, 200)}`;
    const noun = String(count) === "1" ? "entry" : "entries";
    throw new ServiceError("playlist", `${page} is a playlist of ${count} ${noun}: ${how}`);
  }
  if (live_status === "is_upcoming") {
    // A manifest that is there already has media soon.
    const retryable = sources["live_status"] === "manifest";
    throw new ServiceError("live_stream", `the live stream on ${page} has not begun yet`, { retryable });
  }
  // A page that wants a login often redirects to another one.
  const other = webpage_url === url ? null : URL.parse(webpage_url);
  const read = other === null ? "" : ` (the page is ${urlForMessage(other)})`;
  throw new ServiceError("no_media", `there is no format to download on ${page}${read}${whyNone(info)}`);
}

function whyNone({ warnings: [unread] = [], entries_count, extractor, extractor_version }: PageInfo): string {
  if (unread !== undefined) return `: ${unread.message}`;
  if (entries_count === 0) return ": it is a playlist without entries";
  // yt-dlp has an extractor for the page, and says nothing of it.
  if (extractor !== undefined) return "";
  const asked = extractor_version === undefined ? "yt-dlp, which reads more sites, is not in use" : "yt-dlp found none";
  return `: neither the page nor its manifests list one that can be read, and ${asked}`;
}

/** Finds the separate audio of a format. */
type AudioFinder = ReturnType<typeof createAudioFinder>;

function chooseById(
  formats: readonly Format[],
  formatId: string,
  audioOnly: boolean,
  audioOf: AudioFinder,
): FormatChoice {
  const named = formats.filter(({ format_id }) => format_id === formatId);
  const [format] = withoutDrm(assertAny(named, () => unknownFormatError(formats, formatId)));
  if (!audioOnly) return { format, audio: audioOf(format), audioOnly: false };
  if (hasAudio(format)) return { format, audio: null, audioOnly: hasVideo(format) };
  throw unavailableError(`${JSON.stringify(formatId)} has no audio`);
}

function bestAudioOnly(info: PageInfo): FormatChoice {
  const withAudio = info.formats.filter(hasAudio);
  const usable = withoutDrm(assertAny(withAudio, () => unavailableError("none has audio")));
  const separate = bestAudio(
    usable.filter((format) => !hasVideo(format)),
    info.language,
  );
  // The site may say that the original is that in the video, and what is separate are other languages, or descriptions.
  const original = separate?.audio_role === "original" ? undefined : usable.find(isOriginalInVideo);
  const programme = separate === null || isForAll(separate) ? undefined : usable.find(isProgrammeInVideo);
  const format = original ?? programme ?? separate ?? usable[0];
  return { format, audio: null, audioOnly: hasVideo(format) };
}

const isForAll = (format: Format): boolean => isProgramme(format) && format.audio_role !== "dub";

/** What is unknown may be no audio. */
const isProgrammeInVideo = (format: Format): boolean => hasVideo(format) && format.acodec !== null && isForAll(format);

const isOriginalInVideo = (format: Format): boolean => hasVideo(format) && format.audio_role === "original";

type Some<T> = readonly [T, ...T[]];

function withinHeight(formats: readonly Format[], maxHeight: number): Some<Format> {
  const within = formats.filter(({ height }) => height !== null && height <= maxHeight);
  const unknown = formats.filter(({ height }) => height === null);
  return assertAny(within.length > 0 ? within : unknown, () => {
    const heights = [...new Set(formats.map(({ height }) => height))].slice(0, 10);
    return unavailableError(`none is at most ${maxHeight} pixels high; available: ${heights.join(", ")}`);
  });
}

function withoutDrm(formats: readonly Format[]): Some<Format> {
  return assertAny(
    formats.filter(({ has_drm }) => !has_drm),
    () => new ServiceError("drm_protected", `all matching formats are DRM protected: ${listIds(formats)}`),
  );
}

function bestVideo(formats: Some<Format>, audioOf: AudioFinder, preferred?: readonly VideoCodec[]): FormatChoice {
  const ranked = formats.toSorted((a, b) => byQuality(a, b, preferred) || Number(hasAudio(b)) - Number(hasAudio(a)));
  const isPlayable = (format: Format) => {
    const audio = audioOf(format);
    return hasAudio(format) || (audio !== null && isMuxable(format, audio));
  };
  const format = ranked.find(isPlayable) ?? ranked.find((each) => audioOf(each) !== null) ?? ranked[0] ?? formats[0];
  return { format, audio: audioOf(format), audioOnly: false };
}

function unknownFormatError(formats: readonly Format[], formatId: string): ServiceError {
  const more = formats.length > 10 ? ` and ${formats.length - 10} more` : "";
  const rule = `${JSON.stringify(formatId)} is not listed; available: ${listIds(formats)}${more}`;
  return unavailableError(`${rule}; without format_id the best one is taken`);
}

function unavailableError(rule: string): ServiceError {
  return new ServiceError("format_unavailable", `the page has no such format: ${rule}`);
}

/** Lists the first ten ids. */
function listIds(formats: readonly Format[]): string {
  return formats
    .slice(0, 10)
    .map(({ format_id }) => JSON.stringify(format_id))
    .join(", ");
}

function assertAny<T>([first, ...others]: readonly T[], refusal: () => ServiceError): Some<T> {
  if (first === undefined) throw refusal();
  return [first, ...others];
}
