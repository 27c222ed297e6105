import type { Format } from "../model/page-info.ts";
import type { TaskOptions } from "../model/task.ts";
import { chooseFormat, type FormatChoice } from "./choose-format.ts";
import type { ResolvedPage } from "./resolve-page.ts";

/**
 * Finds the formats of `before` on the page that was resolved again, with the same protocol and without DRM: by id, unless
 * height, codecs, language or extension contradict it; else the one that equals it in all of these and has the closest
 * bit rate, at most 10 % apart. Returns `undefined` if one of them is not there any more. A format that the task's options
 * name is found by its id alone, with `chooseFormat` and its errors.
 */
export function findAgain(
  before: FormatChoice,
  page: ResolvedPage,
  options: TaskOptions,
): FormatChoice | undefined {
  if (options.format_id !== undefined) return chooseFormat(page, options);
  const format = findFormatAgain(before.format, page.formats);
  const audio = before.audio && findFormatAgain(before.audio, page.formats);
  return format && audio !== undefined ? { ...before, format, audio } : undefined;
}

function findFormatAgain<F extends Format>(before: Format, formats: readonly F[]): F | undefined {
  const usable = formats.filter(({ has_drm, protocol }) => {
    return !has_drm && protocol === before.protocol;
  });
  const sameId = usable.find(({ format_id }) => format_id === before.format_id);
  if (sameId !== undefined && identifying.every((name) => agrees(sameId[name], before[name]))) {
    return sameId;
  }
  const [closest] = usable
    .filter((format) => identifying.every((name) => format[name] === before[name]))
    .filter((format) => rateRatio(format, before) <= maxRateRatio)
    .toSorted((a, b) => rateRatio(a, before) - rateRatio(b, before));
  return closest;
}

const identifying = ["height", "vcodec", "acodec", "language", "ext"] as const;

/** What a manifest states may be unknown if that cannot be read for once. */
function agrees(a: number | string | null, b: number | string | null): boolean {
  return a === b || a === null || b === null;
}

/** Sites measure bit rates anew. */
const maxRateRatio = 1.1;

function rateRatio(a: Format, b: Format): number {
  if (a.tbr === null || b.tbr === null) return 1;
  return Math.max(a.tbr, b.tbr) / Math.min(a.tbr, b.tbr);
}
