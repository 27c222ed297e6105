import { hasVideo } from "../../model/format-ranking.ts";
import type { Format, PageInfo } from "../../model/page-info.ts";
import type { TaskOptions } from "../../model/task.ts";
import { chooseFormat } from "../../resolvers/choose-format.ts";

/** What a page says of the medium that a task for it would send; `null`: it does not say. */
export interface LikelyType {
  mimeType: string | null;
  /** Of a file name, without the dot. */
  ext: string | null;
}

const unknown: LikelyType = { mimeType: null, ext: null };
const mp4: LikelyType = { mimeType: "video/mp4", ext: "mp4" };
const m4a: LikelyType = { mimeType: "audio/mp4", ext: "m4a" };
const webm: LikelyType = { mimeType: "video/webm", ext: "webm" };

/** @throws ServiceError as `chooseFormat` */
export function likelyType(page: PageInfo, options: TaskOptions): LikelyType {
  const { format, audio, audioOnly } = chooseFormat(page, options);
  if (options.ranges !== undefined) return hasVideo(format) && !audioOnly ? mp4 : unknown;
  if (format.protocol === "https" && audio === null && !audioOnly) return asPublished(format);
  if (audioOnly || !hasVideo(format)) return format.acodec?.startsWith("mp4a") === true ? m4a : unknown;
  const isWebm = format.ext === "webm";
  if (audio !== null && isWebm !== (audio.ext === "webm")) return unknown;
  return isWebm ? webm : mp4;
}

/** What a site states is no header field yet. */
function asPublished({ mime_type, ext }: Format): LikelyType {
  const known = [mp4, m4a, webm].find((type) => type.ext === ext);
  const isMedia = mime_type !== null && /^(?:audio|video)\/[\w.+-]{1,100}$/.test(mime_type);
  return { mimeType: isMedia ? mime_type : (known?.mimeType ?? null), ext };
}
