import { hasVideo } from "../model/format-ranking.ts";
import type { Format, PageInfo } from "../model/page-info.ts";
import type { TaskOptions } from "../model/task.ts";
import { type FileExt, type FileType, fileType } from "../parsers/media-type.ts";
import { chooseFormat } from "./choose-format.ts";

/**
 * Returns what the file is that a task for the page would make; undefined if the page does not say.
 *
 * @throws ServiceError as `chooseFormat`
 */
export function likelyType(page: PageInfo, options: TaskOptions): FileType | undefined {
  const { format, audio, audioOnly } = chooseFormat(page, options);
  const isAudio = audioOnly || !hasVideo(format);
  if (!isAudio && hasUnknownTracks(format)) return undefined;
  if (options.ranges !== undefined) return isAudio ? audioType(format) : fileType("mp4");
  if (format.protocol === "https" && audio === null && !audioOnly) return asPublished(format);
  if (isAudio) return audioType(format);
  const isWebm = format.ext === "webm";
  if (audio !== null && isWebm !== (audio.ext === "webm")) return undefined;
  return fileType(isWebm ? "webm" : "mp4");
}

/** Of a playlist of segments that no master describes, only the segments say whether they have video. */
function hasUnknownTracks({ protocol, vcodec, height }: Format): boolean {
  return protocol !== "https" && vcodec === null && height === null;
}

/** What audio alone becomes, by its codec. */
const audioFiles: readonly (readonly [RegExp, FileExt])[] = [
  [/^(?:mp3|mp4a\.(?:6b|69|40\.34))$/i, "mp3"],
  [/^(?:mp4a|[ae]c-3|alac)/i, "m4a"],
  [/^opus/i, "opus"],
  [/^vorbis/i, "ogg"],
  [/^flac/i, "flac"],
];

function audioType({ acodec }: Format): FileType | undefined {
  const ext = audioFiles.find(([codecs]) => codecs.test(acodec ?? ""))?.[1];
  return ext && fileType(ext, false);
}

/** The extensions that pages state rightly. Of others the content decides, which neither type nor extension need say: Ogg has several kinds. */
const trusted = ["mp4", "m4a", "mov", "webm", "mkv", "mp3", "opus", "flac", "aac", "wav"] as const;

function asPublished(format: Format): FileType | undefined {
  const ext = trusted.find((each) => each === (format.ext === "m4v" ? "mp4" : format.ext));
  return ext && fileType(ext, hasVideo(format));
}
