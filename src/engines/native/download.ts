import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { diskError } from "../../disk-error.ts";
import { ServiceError } from "../../errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Download, DownloadContext, DownloadJob } from "../engine.ts";
import { inspectFile } from "./inspect.ts";
import { assemble, type Made } from "./assemble.ts";
import { createMeter } from "./meter.ts";
import { openParts } from "./parts.ts";
import { planDownload } from "./plan.ts";

export interface Surroundings extends DownloadContext {
  client: HttpClient;
  concurrentFragments: number;
  minFreeBytes: number;
}

/** Does what `Engine.download` promises, in the thread that it is called in. */
export async function download(job: DownloadJob, outer: Surroundings): Promise<Download> {
  try {
    return await downloadInto(job, outer);
  } catch (error) {
    outer.signal.throwIfAborted();
    throw diskError(`download into ${job.folder}`, error);
  }
}

async function downloadInto(job: DownloadJob, outer: Surroundings): Promise<Download> {
  const { client, minFreeBytes } = outer;
  const ending = new AbortController();
  const signal = AbortSignal.any([outer.signal, ending.signal]);
  const plan = await planDownload(job, client, signal);
  const folder = join(job.folder, "parts");
  await mkdir(folder, { recursive: true });
  const parts = await openParts({
    folder,
    client,
    identity: plan.identity,
    maxBytes: job.maxBytes,
    checkRoom: (bytes) => checkRoom(folder, bytes, minFreeBytes),
  });
  const meter = createMeter(plan, parts, outer.onProgress);
  try {
    const made = await assemble(plan, { ...outer, job, parts, meter, signal });
    meter.process();
    return await finish(made, signal).catch(async (error: unknown) => {
      // It was received whole, and yet is of no use: a later run must not take it for good.
      await parts.close();
      await rm(folder, { recursive: true, force: true });
      throw error;
    });
  } finally {
    // What was fetched ahead of a failure.
    ending.abort();
    await parts.close();
  }
}

async function checkRoom(folder: string, bytes: number, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const left = bavail * bsize - bytes;
  if (left >= minFreeBytes) return;
  throw new ServiceError(
    "disk_full",
    `the download needs ${bytes} bytes more, and at least ${minFreeBytes} must stay free; there are ${bavail * bsize}`,
  );
}

/** Reads the file back and makes sure of the disk. */
async function finish({ path, sha256 }: Made, signal: AbortSignal): Promise<Download> {
  const facts = await inspectFile(path);
  const hash = sha256 ?? (await hashFile(path, signal));
  const file = await open(path, "r+");
  try {
    await file.sync();
    const { size } = await file.stat();
    return { path, size, sha256: hash, ...facts };
  } finally {
    await file.close();
  }
}

async function hashFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024, signal })) {
    const bytes: Buffer = chunk;
    hash.update(bytes);
  }
  return hash.digest("hex");
}
