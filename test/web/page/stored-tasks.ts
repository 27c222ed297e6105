import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PageInfo } from "../../../src/model/page-info.ts";
import type { Progress } from "../../../src/model/progress.ts";
import type { TaskFailure } from "../../../src/model/progress.ts";
import type { ResultFile, Task, TaskFile, TaskOptions } from "../../../src/model/task.ts";
import { newTask, type TaskChange } from "../../../src/feed/task-changes.ts";
import { readMedium } from "../../media/rendition.ts";
import { pageInfo } from "../../page-info.ts";
import type { PageApp } from "./open-app.ts";

type Place = Pick<PageApp, "store" | "files">;

interface Given {
  title: string;
  info?: Partial<PageInfo>;
  options?: TaskOptions;
  /** Address of its image. */
  thumbnail?: string;
  /** Name of the key that made it. */
  owner?: string;
}

/** WebVTT in German. */
interface SubtitleFile extends Pick<ResultFile, "role"> {
  name: string;
  content: string;
}

/** Stores a task that waits. */
export function addQueued({ store }: Pick<Place, "store">, { title, options = {}, owner }: Given): Promise<Task> {
  return store.create(newTask(addressOf(title), options, new Date(), owner));
}

/** Stores a task that runs, with the information about its page. Must be called while no other task waits. */
export async function addRunning(place: Place, given: Given, progress: Partial<Progress> = {}): Promise<Task> {
  const { id, url } = await addQueued(place, given);
  while ((await place.store.claim({ leaseMs: 3_600_000 }))?.task.id !== id);
  const { title, info = {}, thumbnail } = given;
  const thumbnails = thumbnail === undefined ? [] : [{ url: thumbnail, width: 320, height: 180 }];
  return place.store.update(id, {
    info: pageInfo({ url, webpage_url: url, title, uploader: "Film club", thumbnails, ...info }),
    progress: { ...halfway, ...progress },
  });
}

/** Stores a collection with a member for each title, which wait. Must be called while no other task waits. */
export async function addCollection(
  { store }: Pick<Place, "store">,
  given: Given,
  titles: readonly string[],
): Promise<Task> {
  const { id, url } = await addQueued({ store }, { options: { entries: "all" }, ...given });
  const claim = await store.claim({ leaseMs: 3_600_000 });
  if (claim?.task.id !== id) throw new Error("another task waits");
  const { lease } = claim;
  const counts = { queued: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 };
  const info = pageInfo({ url, webpage_url: url, title: given.title, uploader: "Film club" });
  const growing = { kind: "collection", counts, growth: { slice: { offset: 0, made: 0 } }, info } as const;
  await store.update(id, growing, { lease });
  const members = titles.map((title, n) => {
    const collection = { id, index: n + 1, title: given.title };
    return { index: n + 1, task: { ...newTask(addressOf(title), {}, new Date(), given.owner), collection } };
  });
  return (await store.grow(id, { lease, members, isReusing: false, growth: null })).task;
}

/** Stores a task that has come to its end, or that waits for a retry. */
export async function addEnded(place: Place, given: Given, change: TaskChange): Promise<Task> {
  const { id } = await addRunning(place, given);
  return place.store.update(id, change);
}

/** Stores a task that has succeeded, with a film of six seconds. */
export async function addDone(
  place: Place,
  given: Given,
  fields: Partial<TaskFile> = {},
  others: readonly SubtitleFile[] = [],
): Promise<Task> {
  const { id } = await addRunning(place, given);
  return endWithFilm(place, { id, title: given.title }, fields, others);
}

/** Lets a task that runs succeed, with a film of six seconds. */
export async function endWithFilm(
  place: Place,
  { id, title }: { id: string; title: string },
  fields: Partial<TaskFile> = {},
  others: readonly SubtitleFile[] = [],
): Promise<Task> {
  const content = readMedium("index-first.mp4");
  const path = join(await place.files.openWorkFolder(id), "result");
  await writeFile(path, content);
  const paths = others.map((_, index) => `${path}-${index}`);
  for (const [index, other] of others.entries()) await writeFile(paths[index]!, other.content);
  await place.files.saveResult(id, path, paths);
  const file = {
    name: `${title}.mp4`,
    mime_type: "video/mp4",
    size: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
    duration: 6,
    width: 160,
    height: 90,
    url: `/tasks/${id}/file`,
    warnings: [],
    ...fields,
  };
  const { name, mime_type, size, sha256 } = file;
  const urlOf = (each: string) => `/tasks/${id}/files/${encodeURIComponent(each)}`;
  const files: ResultFile[] = [
    { kind: "media", name, mime_type, size, sha256, url: urlOf(name) },
    ...others.map((other) => ({
      kind: "subtitles" as const,
      name: other.name,
      language: "de",
      role: other.role ?? "subtitles",
      mime_type: "text/vtt",
      size: Buffer.byteLength(other.content),
      sha256: createHash("sha256").update(other.content).digest("hex"),
      url: urlOf(other.name),
    })),
  ];
  return place.store.update(id, { state: "succeeded", file, files });
}

export const halfway: Progress = {
  stage: "downloading",
  downloaded_bytes: 3_300_000,
  total_bytes: 15_300_000,
  speed: 553_000,
  eta: 22,
};

export const unreachable: TaskFailure = {
  code: "upstream_unreachable",
  message: "GET https://video.example.com/watch/: connecting to 192.0.2.7 took over 10000 ms",
  retryable: true,
};

export const protectedByDrm: TaskFailure = {
  code: "drm_protected",
  message: "all matching formats are encrypted with keys from a licence server (DRM)",
  retryable: false,
};

function addressOf(title: string): string {
  const name = createHash("sha1").update(title).digest("hex").slice(0, 10);
  return `https://video.example.com/watch/${name}`;
}
