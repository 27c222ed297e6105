import { createHash } from "node:crypto";
import { mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { diskError } from "../../files/disk-error.ts";
import { ServiceError } from "../../errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Download, DownloadContext, DownloadJob } from "../engine.ts";
import { type MediaInfo, inspectFile } from "./inspect.ts";
import { assemble, type Inspect } from "./assemble.ts";
import { createMeter } from "./meter.ts";
import { openPartStore } from "./part-store.ts";
import { planDownload } from "./plan.ts";

export interface WorkerDownloadContext extends DownloadContext {
  client: HttpClient;
  concurrentFragments: number;
  minFreeBytes: number;
}

/** Does what `Engine.download` promises, in the thread that it is called in. */
export async function download(job: DownloadJob, outer: WorkerDownloadContext): Promise<Download> {
  try {
    return await downloadInto(job, outer);
  } catch (error) {
    outer.signal.throwIfAborted();
    throw diskError(`download into ${job.folder}`, error);
  }
}

async function downloadInto(job: DownloadJob, outer: WorkerDownloadContext): Promise<Download> {
  const { client, minFreeBytes } = outer;
  const ending = new AbortController();
  const signal = AbortSignal.any([outer.signal, ending.signal]);
  const plan = await planDownload(job, client, signal);
  const folder = join(job.folder, "parts");
  // What is not ready has to be written a second time.
  const copies = plan.isPassthrough ? 1 : 2;
  await mkdir(folder, { recursive: true });
  const parts = await openPartStore({
    folder,
    client,
    identity: plan.identity,
    maxBytes: job.maxBytes,
    checkFreeSpace: (bytes) => checkFreeSpace(folder, copies * bytes, minFreeBytes),
  });
  const meter = createMeter(plan, parts, outer.onProgress);
  let isUseless = false;
  const inspect = async (path: string): Promise<MediaInfo> => {
    try {
      return await inspectFile(path);
    } catch (error) {
      // It was received whole, and yet is of no use: a later run must not take it for good.
      isUseless = isVerdict(error);
      throw error;
    }
  };
  try {
    const made = await assemble(plan, { ...outer, job, parts, meter, signal, inspect });
    meter.process();
    return await finish(made, inspect, signal);
  } finally {
    // What was fetched ahead of a failure.
    ending.abort();
    await parts.close();
    if (isUseless) await rm(folder, { recursive: true, force: true });
  }
}

async function checkFreeSpace(folder: string, bytes: number, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const left = bavail * bsize - bytes;
  if (left >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `not enough disk space: the download needs ${bytes} more bytes and ${minFreeBytes} must stay free, ${bavail * bsize} are free`,
  );
}

/** On the bytes; what an abort or the disk ends says nothing of them. */
function isVerdict(error: unknown): boolean {
  return error instanceof ServiceError && error.code.startsWith("upstream_");
}

/** Reads the file back while the disk takes it in. */
async function finish(path: string, inspect: Inspect, signal: AbortSignal): Promise<Download> {
  const file = await open(path, "r+");
  try {
    const [facts, sha256] = await Promise.all([inspect(path), hashFile(path, signal), file.sync()]);
    const { size } = await file.stat();
    return { path, size, sha256, ...facts };
  } finally {
    await file.close();
  }
}

async function hashFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  const memory = Buffer.allocUnsafeSlow(1024 * 1024);
  const file = await open(path, "r");
  try {
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(memory);
      if (bytesRead === 0) return hash.digest("hex");
      hash.update(memory.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}
