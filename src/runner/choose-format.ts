import { ServiceError } from "../errors.ts";
import type { Format, PageInfo } from "../page-info.ts";
import type { TaskOptions } from "../task.ts";
import { bestSound, isMuxable, hasPictures, hasSound, createAudioFinder } from "./audio-formats.ts";

/** What the engine is to fetch. */
export interface FormatChoice {
  format: Format;
  /** Where the sound is if it is not, or may not be, in `format`. */
  audio: Format | null;
  /** Leave the pictures of `format` out. */
  audioOnly: boolean;
}

/**
 * The format of the page that a task asks for.
 *
 * - `format_id` names it, and `max_height` then means nothing; one without sound gets its sound all the
 *   same.
 * - `audio_only`: the best format that is sound alone, in the page's language where one is; else the
 *   best one that has sound, its pictures left out.
 * - Else the best with pictures and sound: by height, then bit rate, then one whose sound need not be
 *   fetched apart, then the page's order. Pictures whose sound is nowhere are taken only where nothing
 *   has both, mere sound only where nothing has pictures.
 * - `max_height`: only formats that are known to be no higher, else those of unknown height.
 *
 * Formats with DRM are passed over where others would do.
 *
 * @throws ServiceError, never retryable: `no_media` (the page lists no format), `live_stream` (nor can
 * it: the event has not begun), `format_unavailable` (it lists none that was asked for),
 * `drm_protected` (it lists some, all with DRM).
 */
export function chooseFormat(info: PageInfo, options: TaskOptions): FormatChoice {
  assertMedia(info);
  const { format_id, max_height, audio_only = false } = options;
  if (format_id !== undefined) return pinned(info, format_id, audio_only);
  if (audio_only) return soundAlone(info);
  const pictured = some(info.formats.filter(hasPictures));
  if (pictured === undefined) return soundAlone(info);
  const within = max_height === undefined ? pictured : withinHeight(pictured, max_height);
  return best(info, withoutDrm(within));
}

function assertMedia({ url, formats, live_status }: PageInfo): void {
  if (formats.length > 0) return;
  const page = url.slice(0, 200);
  if (live_status === "is_upcoming") {
    throw new ServiceError("live_stream", `the live stream on ${page} has not begun yet`);
  }
  throw new ServiceError("no_media", `there is no format to download on ${page}`);
}

function pinned(info: PageInfo, formatId: string, audioOnly: boolean): FormatChoice {
  const named = info.formats.filter(({ format_id }) => format_id === formatId);
  const [format] = withoutDrm(assertAny(named, () => unknownFormat(info.formats, formatId)));
  if (!audioOnly) {
    return { format, audio: createAudioFinder(info)(format), audioOnly: false };
  }
  if (hasSound(format)) return { format, audio: null, audioOnly: hasPictures(format) };
  throw unavailable(`${JSON.stringify(formatId)} has no sound to take alone`);
}

function soundAlone(info: PageInfo): FormatChoice {
  const audible = info.formats.filter(hasSound);
  const open = withoutDrm(assertAny(audible, () => unavailable("none has sound")));
  const alone = open.filter((format) => !hasPictures(format));
  const format = bestSound(alone, info.language) ?? open[0];
  return { format, audio: null, audioOnly: hasPictures(format) };
}

type Some<T> = readonly [T, ...T[]];

function withinHeight(formats: readonly Format[], maxHeight: number): Some<Format> {
  const within = formats.filter(({ height }) => height !== null && height <= maxHeight);
  const unknown = formats.filter(({ height }) => height === null);
  return assertAny(within.length > 0 ? within : unknown, () => {
    const heights = [...new Set(formats.map(({ height }) => height))].slice(0, 10);
    return unavailable(`none is at most ${maxHeight} pixels high, but ${heights.join(", ")}`);
  });
}

function withoutDrm(formats: Some<Format>): Some<Format> {
  return assertAny(
    formats.filter(({ has_drm }) => !has_drm),
    () =>
      new ServiceError(
        "drm_protected",
        `all matching formats are DRM protected: ${idsOf(formats)}`,
      ),
  );
}

function best(info: PageInfo, formats: Some<Format>): FormatChoice {
  const ordered = formats.toSorted(betterFirst);
  const audioOf = createAudioFinder(info);
  const fitting = (format: Format) => {
    const audio = audioOf(format);
    return hasSound(format) || (audio !== null && isMuxable(format, audio));
  };
  const format =
    ordered.find(fitting) ?? ordered.find((silent) => audioOf(silent) !== null) ?? ordered[0];
  return { format: format ?? formats[0], audio: audioOf(format ?? formats[0]), audioOnly: false };
}

function betterFirst(a: Format, b: Format): number {
  return (
    (b.height ?? 0) - (a.height ?? 0) ||
    (b.tbr ?? 0) - (a.tbr ?? 0) ||
    Number(!hasSound(a)) - Number(!hasSound(b))
  );
}

function unknownFormat(formats: readonly Format[], formatId: string): ServiceError {
  const more = formats.length > 10 ? ` and ${formats.length - 10} more` : "";
  return unavailable(
    `${JSON.stringify(formatId)} is not listed; available: ${idsOf(formats)}${more}`,
  );
}

function unavailable(rule: string): ServiceError {
  return new ServiceError("format_unavailable", `the page has no such format: ${rule}`);
}

/** The first ten, as JSON. */
function idsOf(formats: readonly Format[]): string {
  return formats
    .slice(0, 10)
    .map(({ format_id }) => JSON.stringify(format_id))
    .join(", ");
}

function assertAny<T>(found: readonly T[], refusal: () => ServiceError): Some<T> {
  const any = some(found);
  if (any === undefined) throw refusal();
  return any;
}

function some<T>([first, ...others]: readonly T[]): Some<T> | undefined {
  return first === undefined ? undefined : [first, ...others];
}
