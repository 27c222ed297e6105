import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileStore } from "../../src/files/files.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { ResultFile, Task, TaskFile } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { pageUrl } from "./requests.ts";

/** A file beside the medium. */
type OtherContent = Omit<ResultFile, "size" | "sha256" | "url"> & { content: Buffer };

/** Stores a task and runs it to success with a file of this content. */
export async function addFinishedTask(
  { store, files }: { store: TaskStore; files: FileStore },
  content: Buffer,
  fields: Partial<TaskFile> = {},
  owner?: string,
  others: readonly OtherContent[] = [],
): Promise<Task> {
  const { id } = await store.create(newTask(pageUrl, {}, new Date(), owner));
  while ((await store.claim({ leaseMs: 60_000 }))?.task.id !== id);
  const saved = await saveFiles(files, id, content, fields, others);
  return store.update(id, { state: "succeeded", ...saved });
}

/** Saves the files of a task that runs; returns what its record says of them. */
export async function saveFiles(
  files: FileStore,
  id: string,
  content: Buffer,
  fields: Partial<TaskFile> = {},
  others: readonly OtherContent[] = [],
): Promise<{ file: TaskFile; files: ResultFile[] }> {
  const folder = await files.openWorkFolder(id);
  const file = {
    name: "A film.mp4",
    mime_type: "video/mp4",
    size: content.length,
    sha256: sha256(content),
    duration: 61.5,
    width: 1280,
    height: 720,
    url: `/tasks/${id}/file`,
    ...fields,
  };
  const { name, mime_type, size } = file;
  const listed: ResultFile[] = [
    { kind: "media", name, mime_type, size, sha256: file.sha256, url: urlOf(id, name) },
    ...others.map(({ content: other, ...about }) => {
      return { ...about, size: other.length, sha256: sha256(other), url: urlOf(id, about.name) };
    }),
  ];
  const contents = [content, ...others.map((other) => other.content)];
  const paths = contents.map((_, number) => join(folder, `result-${number}`));
  await Promise.all(paths.map((path, number) => writeFile(path, contents[number]!)));
  const [medium, ...rest] = paths;
  await files.saveResult(id, medium!, rest);
  return { file, files: listed };
}

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");

const urlOf = (id: string, name: string) => `/tasks/${id}/files/${encodeURIComponent(name.toWellFormed())}`;
