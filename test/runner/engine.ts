import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Download, DownloadContext, DownloadJob, Engine } from "../../src/engines/engine.ts";

/** What the test's engine does with a job; `count` is how many it has had for this address, from 1. */
export type Downloads = (
  job: DownloadJob,
  context: DownloadContext,
  count: number,
) => Promise<Download>;

/** An engine that needs no network: it writes the format's address as the medium, or does as told. */
export function createTestEngine(downloads: Downloads = writeMedium): Engine {
  const counts = new Map<string, number>();
  return {
    name: "test",
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
  };
}

/** Leaves something in the folder and goes on until it is aborted. */
export async function neverEnd({ folder }: DownloadJob, context: DownloadContext): Promise<never> {
  await writeFile(join(folder, "part"), "begun");
  context.onProgress({ stage: "downloading", downloaded_bytes: 5, total_bytes: 100 });
  if (!context.signal.aborted) await once(context.signal, "abort");
  throw context.signal.reason;
}
