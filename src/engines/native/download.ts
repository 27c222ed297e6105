import { createHash } from "node:crypto";
import { mkdir, open, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { diskError } from "../../files/disk-error.ts";
import { isUpstreamError, ServiceError } from "../../model/errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Download, DownloadContext, DownloadJob, EngineDeps } from "../engine.ts";
import { assemble, type FileWork, type Inspect, type Limited } from "./output/assemble.ts";
import { createDeliveries } from "./sources/delivery.ts";
import { createSourceFetcher } from "./sources/fetch-sources.ts";
import { inspectFile } from "./inspect/inspect.ts";
import { createGradualFlush, type GradualFlush } from "./output/gradual-flush.ts";
import { createFormatLocator } from "./sources/locate-format.ts";
import { openPartStore } from "./parts/part-store.ts";
import { planDownload, statedKinds } from "./sources/plan.ts";
import { createProgressTracker } from "./sources/progress-tracker.ts";
import { judge, judgeDelivery } from "./output/verdict.ts";

export type WorkerDownloadContext = DownloadContext &
  Pick<EngineDeps, "concurrentFragments" | "minFreeBytes" | "minSpeedBps"> & {
    client: HttpClient;
    /** Called before and, with `null`, after work on complete files. */
    onWork(work: FileWork | null): void;
  };

/** Implements `Engine.download` in the calling process. */
export async function download(
  job: DownloadJob,
  context: WorkerDownloadContext,
): Promise<Download> {
  try {
    return await downloadInto(job, context);
  } catch (error) {
    context.signal.throwIfAborted();
    throw diskError(`download into ${job.folder}`, error);
  }
}

async function downloadInto(job: DownloadJob, context: WorkerDownloadContext): Promise<Download> {
  const { client, concurrentFragments, minFreeBytes, minSpeedBps, onProgress, onWork } = context;
  const { folder, pageUrl, audioOnly, maxBytes, maxLiveS } = job;
  const ending = new AbortController();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  const plan = await planDownload(job, createFormatLocator(client, { pageUrl, signal }));
  const partsFolder = join(folder, "parts");
  // Everything else is written a second time.
  const copies = plan.isPassthrough ? 1 : 2;
  await mkdir(partsFolder, { recursive: true });
  const parts = await openPartStore({
    folder: partsFolder,
    client,
    identity: plan.identity,
    maxBytes,
    minSpeedBps,
    checkFreeSpace: (bytes) => checkFreeSpace(partsFolder, copies * bytes, minFreeBytes),
  });
  const progress = createProgressTracker(plan, parts, onProgress);
  const ahead = 2 * concurrentFragments;
  const deliveries = createDeliveries();
  const flush = createGradualFlush();
  const { finish: recordingEnd = new AbortController().signal } = context;
  const common = { parts, progress, deliveries, client, finish: recordingEnd };
  const fetcher = createSourceFetcher({ ...common, signal, maxLiveS, ahead });
  let isUseless = false;
  const limited: Limited = async (kind, paths, run) => {
    const files = await Promise.all(paths.map((path) => stat(path)));
    onWork({ kind, bytes: files.reduce((sum, { size }) => sum + size, 0) });
    try {
      return await run();
    } finally {
      onWork(null);
    }
  };
  const inspect: Inspect = async (path) => {
    try {
      const isSizeStated = parts.isSizeStated(path);
      return await limited("read", [path], () => inspectFile(path, { isSizeStated }));
    } catch (error) {
      // An abort or a disk error says nothing about the content.
      isUseless = isUpstreamError(error);
      throw error;
    }
  };
  try {
    const { onWritten } = flush;
    const options = { folder, audioOnly, maxBytes, fetcher, inspect, limited, onWritten, signal };
    const { path, written, warnings } = await assemble(plan, options);
    progress.startProcessing();
    const file = await finish(path, { inspect, flush, signal });
    const known = { delivery: deliveries.of, durationS: file.duration };
    const found =
      written === null
        ? judgeDelivery(known)
        : judge({ path, ...written, ...known, stated: statedKinds(plan, audioOnly) });
    return { ...file, warnings: [...warnings, ...found] };
  } finally {
    // Stops what is still fetched ahead after a failure.
    ending.abort();
    await parts.close();
    // A later run would use these parts: they are complete, but no media.
    if (isUseless) await rm(partsFolder, { recursive: true, force: true });
  }
}

async function checkFreeSpace(folder: string, bytes: number, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes - bytes >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `not enough disk space: the download needs ${bytes} more bytes and ${minFreeBytes} must stay free, ${freeBytes} are free`,
  );
}

/** Inspects and hashes the file while it is flushed to the disk. */
async function finish(
  path: string,
  { inspect, flush, signal }: { inspect: Inspect; flush: GradualFlush; signal: AbortSignal },
): Promise<Omit<Download, "warnings">> {
  const [info, sha256] = await Promise.all([
    inspect(path),
    hashFile(path, signal),
    flush.finish(path),
  ]);
  const { size } = await stat(path);
  return { path, size, sha256, ...info };
}

async function hashFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  const bufferBytes = 1024 * 1024;
  let spare = Buffer.allocUnsafeSlow(bufferBytes);
  await using file = await open(path, "r");
  let reading = file.read(Buffer.allocUnsafeSlow(bufferBytes));
  for (;;) {
    const { buffer, bytesRead } = await reading;
    signal.throwIfAborted();
    if (bytesRead === 0) return hash.digest("hex");
    // The next bytes are read while these are hashed.
    reading = file.read(spare);
    reading.catch(() => {});
    hash.update(buffer.subarray(0, bytesRead));
    spare = buffer;
  }
}
