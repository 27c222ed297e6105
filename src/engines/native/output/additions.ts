import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../../../model/errors.ts";
import type { HttpClient } from "../../../net/client.ts";
import { fetchImage } from "../../../net/fetch-image.ts";
import { createPageHeaders } from "../../../net/http/site-headers.ts";
import { type Cover, noAdditions } from "../../../remux/additions.ts";
import type { DownloadJob, OtherFile } from "../../engine.ts";
import type { PendingAdditions } from "./remux.ts";

export interface AdditionFetcher extends PendingAdditions {
  /** Writes what lies beside the medium to the job's folder. */
  writeFiles(): Promise<OtherFile[]>;
}

/** How long a picture is waited for once the media are complete. */
const patienceMs = 3_000;
const maxTried = 3;

/** Starts to fetch what a job adds to the media. What cannot be had is left out. */
export function fetchAdditions(
  { description, embed, pageUrl, folder }: Pick<DownloadJob, "description" | "embed" | "pageUrl" | "folder">,
  { client, signal }: { client: HttpClient; signal: AbortSignal },
): AdditionFetcher {
  const { tags, chapters, covers } = description;
  const ending = new AbortController();
  let cover: Cover | null = null;
  const fetching = fetchCover(covers, new URL(pageUrl), client, AbortSignal.any([signal, ending.signal])).then(
    (found) => (cover = found),
  );
  // It counts only if the media can be had.
  fetching.catch(() => {});

  async function settle(): Promise<void> {
    await Promise.race([fetching, sleep(patienceMs, undefined, { signal, ref: false })]).finally(() => ending.abort());
    await fetching;
    signal.throwIfAborted();
  }

  return {
    bytes: () => (embed === "none" ? 0 : (cover?.data.length ?? 0) + JSON.stringify([tags, chapters]).length * 3),
    async get() {
      if (embed === "none") return noAdditions;
      await settle();
      return { tags, chapters, cover, subtitles: [] };
    },
    async writeFiles() {
      await settle();
      return cover === null ? [] : [await writeCover(cover, folder)];
    },
  };
}

/** Returns the first of the pictures that is a JPEG or PNG; `null` if none is, or the signal is aborted. */
async function fetchCover(
  urls: readonly string[],
  page: URL,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Cover | null> {
  const types = ["image/jpeg", "image/png"] as const;
  for (const url of urls.slice(0, maxTried)) {
    try {
      const { bytes, type } = await fetchImage(client, new URL(url), {
        types,
        headers: createPageHeaders(page),
        signal,
      });
      const mimeType = types.find((each) => each === type);
      if (mimeType !== undefined) return { mimeType, data: bytes };
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ServiceError)) throw error;
    }
  }
  return null;
}

async function writeCover({ mimeType, data }: Cover, folder: string): Promise<OtherFile> {
  const ext = mimeType === "image/png" ? "png" : "jpg";
  const path = join(folder, `cover.${ext}`);
  await using file = await open(path, "w");
  await file.writeFile(data);
  await file.sync();
  const sha256 = createHash("sha256").update(data).digest("hex");
  return { kind: "cover", path, ext, mime_type: mimeType, size: data.length, sha256 };
}
