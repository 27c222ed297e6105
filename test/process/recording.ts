import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Task } from "../../src/model/task.ts";
import { probe } from "../media/probe.ts";
import type { TaskClient } from "./download-client.ts";
import { makeFolder } from "../folder.ts";

/** Whether a live stream is recorded, and so much of it on the disk. */
export function hasRecorded(bytes: number): (task: Task) => boolean {
  return ({ progress }) => progress?.is_live === true && (progress.downloaded_bytes ?? 0) >= bytes;
}

/** Returns the number of pictures in the task's file. */
export async function picturesOf(client: TaskClient, id: string): Promise<number | undefined> {
  const folder = makeFolder();
  const path = join(folder, "file.mp4");
  await writeFile(path, await (await client.file(id)).bytes());
  return (await probe(path)).streams[0]?.frames;
}
