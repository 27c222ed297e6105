import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileStore } from "../../src/files/files.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Task, TaskFile } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { pageUrl } from "./requests.ts";

/** Stores a task and runs it to success with a file of this content. */
export async function addFinishedTask(
  { store, files }: { store: TaskStore; files: FileStore },
  content: Buffer,
  fields: Partial<TaskFile> = {},
  owner?: string,
): Promise<Task> {
  const { id } = await store.create(newTask(pageUrl, {}, new Date(), owner));
  while ((await store.claim({ leaseMs: 60_000 }))?.task.id !== id);
  const path = join(await files.openWorkFolder(id), "result");
  await writeFile(path, content);
  await files.saveResult(id, path);
  const file = {
    name: "A film.mp4",
    mime_type: "video/mp4",
    size: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
    duration: 61.5,
    width: 1280,
    height: 720,
    url: `/tasks/${id}/file`,
    ...fields,
  };
  return store.update(id, { state: "succeeded", file });
}
