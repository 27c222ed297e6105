import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Download, DownloadContext, DownloadJob, Engine } from "../../src/engines/engine.ts";

/** Does a job of the test engine; `count` is the number of jobs for this URL so far, from 1. */
export type Downloads = (job: DownloadJob, context: DownloadContext, count: number) => Promise<Download>;

/** Creates an engine without network: it writes the format's URL as the media file, or calls `downloads`. */
export function createTestEngine(downloads: Downloads = writeMedium): Engine {
  const counts = new Map<string, number>();
  return {
    async download(job, context) {
      const count = (counts.get(job.format.url) ?? 0) + 1;
      counts.set(job.format.url, count);
      context.signal.throwIfAborted();
      return downloads(job, context, count);
    },
    close: async () => {},
  };
}

export async function writeMedium({ format, folder }: DownloadJob): Promise<Download> {
  const path = join(folder, "medium.mp4");
  await writeFile(path, format.url);
  return {
    path,
    ext: "mp4",
    mime_type: "video/mp4",
    size: format.url.length,
    sha256: createHash("sha256").update(format.url).digest("hex"),
    duration: 12.5,
    width: 640,
    height: 360,
    warnings: [],
    others: [],
    audioLanguages: [],
    offeredLanguages: [],
    ownSubtitles: [],
  };
}

/** Writes a part and waits until it is aborted. */
export async function neverEnd({ folder }: DownloadJob, context: DownloadContext): Promise<never> {
  await writeFile(join(folder, "part"), "begun");
  context.onProgress({ stage: "downloading", downloaded_bytes: 5, total_bytes: 100 });
  if (!context.signal.aborted) await once(context.signal, "abort");
  throw context.signal.reason;
}
