import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import type { HttpClient } from "../../../net/client.ts";
import { fetchImage } from "../../../net/fetch-image.ts";
import { createPageHeaders } from "../../../net/http/site-headers.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { boundCues, type Cover, type Cue, noAdditions, type TextTrack, withCues } from "../../../remux/additions.ts";
import { isShowable } from "../../../remux/cover-size.ts";
import { writeSubRip, writeWebVtt } from "../../../subtitles/write.ts";
import type { DownloadJob, MadeFile, OtherFile } from "../../engine.ts";
import { type FetchedTexts, fetchTexts, missingWarning } from "../texts/fetch-texts.ts";
import { createOwnAdditions, mergeDescriptions } from "../texts/own-additions.ts";
import { type MediaPosition, placeCues } from "../texts/place-cues.ts";
import { TextStore } from "../texts/text-store.ts";
import type { PendingAdditions } from "./remux.ts";

interface AdditionFetcher extends PendingAdditions {
  /** What the media say themselves. */
  readonly own: ReturnType<typeof createOwnAdditions>;
  /**
   * Writes what lies beside the medium to the job's folder; returns it, and what is missing of it. Cues end with the
   * medium, after `durationS`; Infinity: that is unknown.
   */
  writeFiles(durationS: number): Promise<{ others: OtherFile[]; warnings: readonly FileWarning[] }>;
}

/** How long to wait for a picture and for subtitles once the media are complete. */
const coverPatienceMs = 10_000;
const textPatienceMs = 60_000;
const maxTried = 5;
/** Extensions of pictures that are unlikely to be a JPEG or PNG. */
const otherPictures = /\.(?:webp|avif|svg|gif)(?:[?#]|$)/i;
/** Subtitles of a file. */
const maxTexts = 60;
/** As many pictures have. */
const pendingCoverBytes = 512 << 10;

type AdditionJob = Pick<DownloadJob, "description" | "embed" | "pageUrl" | "folder" | "subtitles" | "ownSubtitles">;

/**
 * Starts to fetch what a job adds to the media. What cannot be had is left out.
 *
 * @param isKept Nothing is written into the media, which stay as published.
 */
export function fetchAdditions(
  job: AdditionJob,
  { client, isKept, signal }: { client: HttpClient; isKept: boolean; signal: AbortSignal },
): AdditionFetcher {
  const { description, embed, pageUrl, folder } = job;
  const store = new TextStore(folder);
  const { covers } = description;
  const cover = startPatient(signal, coverPatienceMs, null, (own) => fetchCover(covers, new URL(pageUrl), client, own));
  const texts = startPatient(signal, textPatienceMs, nothingInTime(job), (own) =>
    fetchTexts(job, { client, store, signal: own }),
  );
  const own = createOwnAdditions(job, { isDescribed: !isKept && embed !== "none", store, signal });
  let position: MediaPosition = { originS: 0, offsetOf: () => undefined };

  /** Those that are tracks of the media only if `media` lack them. */
  async function subtitles(media: MediaPosition, isPublished = false): Promise<TextTrack[]> {
    const { texts: fetched } = await texts.get();
    const all = isPublished ? fetched : [...fetched, ...own.texts()];
    return all.slice(0, maxTexts).map(({ wanted, stored }) => withCues(wanted, () => placeCues(stored.parts(), media)));
  }

  return {
    own,
    ...knownSizes(job, own, () => cover.known()),
    async ready() {
      await Promise.all([cover.get(), texts.get()]);
    },
    async get(media) {
      position = media;
      if (embed === "none") return noAdditions;
      const said = mergeDescriptions(description, own.description(), media);
      const added = await subtitles(media, media.isPublished);
      return { ...said, cover: (await cover.get()) ?? said.cover, subtitles: added };
    },
    async writeFiles(durationS) {
      const picture = await cover.get();
      const { warnings } = await texts.get();
      const others = picture === null ? [] : [await writeCover(picture, folder)];
      const unshown: FileWarning[] = [];
      for (const [index, track] of (await subtitles(position)).entries()) {
        const { cues } = track;
        const shown = boundCues(cues, durationS);
        const isUnshown = cues.length > 0 && shown.length === 0;
        if (isUnshown) unshown.push(missingWarning(track, "their times are all before or after those of the media"));
        else others.push(...(await writeSubtitleFiles(track, shown, join(folder, `subtitles-${index}`))));
      }
      return { others, warnings: [...warnings, ...own.warnings(), ...unshown] };
    },
  };
}

/** Returns what is known of the sizes of additions; `cover` returns undefined while that is fetched. */
function knownSizes(
  { description, embed, subtitles }: AdditionJob,
  own: ReturnType<typeof createOwnAdditions>,
  cover: () => Cover | null | undefined,
): Pick<AdditionFetcher, "bytes" | "saidBytes" | "textTracks"> {
  if (embed === "none") return { bytes: () => 0, saidBytes: () => 0, textTracks: () => 0 };
  const textTracks = () => subtitles.length + own.texts().length;
  const saidBytes = () => {
    const { tags, chapters } = own.description();
    return JSON.stringify([description, tags, chapters]).length * 3;
  };
  const coverBytes = () => {
    const picture = cover();
    const isPending = picture === undefined && description.covers.length > 0;
    return isPending ? pendingCoverBytes : ((picture ?? own.description().cover)?.data.length ?? 0);
  };
  return { bytes: () => coverBytes() + saidBytes() + textTracks() * subtitleIndexBytes, saidBytes, textTracks };
}

/** Of a track in the index: a thousand cues, and what is between them. */
const subtitleIndexBytes = 24_000;

/** Returns what is used if nothing has arrived in time. */
function nothingInTime({ subtitles }: AdditionJob): FetchedTexts {
  const reason = `they did not come within ${textPatienceMs / 1000} s of the last byte of media`;
  const warnings = subtitles.map(({ language, role }) => missingWarning({ language, role }, reason));
  return { texts: [], warnings };
}

/** Starts `fetch`; `get` waits at most that long for its result, then returns `otherwise`. */
function startPatient<T>(
  signal: AbortSignal,
  maxWaitMs: number,
  otherwise: T,
  fetch: (own: AbortSignal) => Promise<T>,
) {
  const ending = new AbortController();
  let known: T | undefined;
  let waiting: Promise<T> | undefined;
  const fetching = fetch(AbortSignal.any([signal, ending.signal])).then((found) => (known = found));
  // It counts only if the media can be had.
  fetching.catch(() => {});
  const wait = async (): Promise<T> => {
    const late = sleep(maxWaitMs, otherwise, { signal, ref: false });
    const found = await Promise.race([fetching, late]).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
    ending.abort();
    return found;
  };
  return { known: () => known, get: (): Promise<T> => (waiting ??= wait()) };
}

/** Returns the first of the pictures that is a JPEG or PNG; `null` if none is, or the signal is aborted. */
async function fetchCover(
  urls: readonly string[],
  page: URL,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Cover | null> {
  const types = ["image/jpeg", "image/png"] as const;
  const byName = urls.toSorted((a, b) => Number(otherPictures.test(a)) - Number(otherPictures.test(b)));
  for (const url of byName.slice(0, maxTried)) {
    try {
      const { bytes, type } = await fetchImage(client, new URL(url), {
        types,
        headers: createPageHeaders(page),
        signal,
      });
      const mimeType = types.find((each) => each === type);
      const cover = mimeType && { mimeType, data: bytes };
      if (cover !== undefined && isShowable(cover)) return cover;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ServiceError)) throw error;
    }
  }
  return null;
}

async function writeCover({ mimeType, data }: Cover, folder: string): Promise<OtherFile> {
  const ext = mimeType === "image/png" ? "png" : "jpg";
  return { kind: "cover", ext, mime_type: mimeType, ...(await writeDurably(join(folder, `cover.${ext}`), [data])) };
}

/** Writes a track as WebVTT and as SubRip. */
async function writeSubtitleFiles(
  { language, role, automatic }: TextTrack,
  cues: readonly Cue[],
  path: string,
): Promise<OtherFile[]> {
  const kinds = [
    { ext: "vtt", mime_type: "text/vtt", texts: writeWebVtt(cues) },
    { ext: "srt", mime_type: "application/x-subrip", texts: writeSubRip(cues) },
  ];
  const files: OtherFile[] = [];
  for (const { ext, mime_type, texts } of kinds) {
    const file = await writeDurably(`${path}.${ext}`, texts);
    files.push({ kind: "subtitles", ext, mime_type, language, role, automatic, ...file });
  }
  return files;
}

async function writeDurably(path: string, pieces: Iterable<Uint8Array | string>): Promise<MadeFile> {
  await using file = await open(path, "w");
  const hash = createHash("sha256");
  let size = 0;
  for (const piece of pieces) {
    const data = Buffer.from(piece);
    await file.writeFile(data);
    hash.update(data);
    size += data.length;
  }
  await file.sync();
  return { path, size, sha256: hash.digest("hex") };
}
