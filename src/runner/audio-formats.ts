import type { Format, PageInfo } from "../page-info.ts";

/** `"none"` says that there is none; not to know is no reason to think so. */
export const hasPictures = ({ vcodec }: Format): boolean => vcodec !== "none";
export const hasSound = ({ acodec }: Format): boolean => acodec !== "none";

/**
 * Gives where the sound of a format of the page is, if not in itself: in the same manifest; where there
 * is none and the format certainly has none in it, anywhere on the page. `null` where it is in the format
 * or nowhere. Sound with DRM is none. What fits into the same container goes before the rest, then as
 * `bestSound` says.
 */
export function createAudioFinder({
  formats,
  language,
}: PageInfo): (format: Format) => Format | null {
  const sounds = formats.filter(
    (format) => !hasPictures(format) && hasSound(format) && !format.has_drm,
  );
  const anywhere = bestForEach(sounds, language);
  const byManifest = new Map(
    Map.groupBy(sounds, ({ manifest_url }) => manifest_url)
      .entries()
      .map(([url, listed]) => [url, bestForEach(listed, language)]),
  );
  return (format) => {
    const isCertain = !hasSound(format);
    const isPossible = format.acodec === null && format.protocol !== "https";
    if (!hasPictures(format) || (!isCertain && !isPossible)) return null;
    const { manifest_url } = format;
    const own = manifest_url === null ? undefined : byManifest.get(manifest_url);
    const best = own ?? (isCertain ? anywhere : undefined);
    return best?.[isWebm(format) ? "webm" : "mp4"] ?? null;
  };
}

/** The best for pictures in either container. */
function bestForEach(sounds: readonly Format[], language: string | null) {
  const any = bestSound(sounds, language);
  return {
    webm: bestSound(sounds.filter(isWebm), language) ?? any,
    mp4:
      bestSound(
        sounds.filter((sound) => !isWebm(sound)),
        language,
      ) ?? any,
  };
}

/** The first in the page's language, else the first: formats are listed best first. */
export function bestSound(sounds: readonly Format[], language: string | null): Format | null {
  const spoken = sounds.find((sound) => language !== null && isSame(sound.language, language));
  return spoken ?? sounds[0] ?? null;
}

/** Whether both go into one container without re-encoding: WebM with WebM, everything else as MP4. */
export function isMuxable(a: Format, b: Format): boolean {
  return isWebm(a) === isWebm(b);
}

function isWebm({ ext, mime_type }: Format): boolean {
  return ext === "webm" || ext === "weba" || mime_type?.endsWith("/webm") === true;
}

/** By the language alone: `en-GB` is as good as `en` (RFC 5646 §2.2.1). */
function isSame(a: string | null, b: string): boolean {
  return a?.split("-", 1)[0]?.toLowerCase() === b.split("-", 1)[0]?.toLowerCase();
}
