import { noTasks } from "../../src/feed/collection-changes.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import type { FileStore } from "../../src/files/files.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import type { Library } from "../../src/runner/library/library.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { pageInfo } from "../page-info.ts";
import { saveFiles } from "./finished-task.ts";
import { pageUrl } from "./requests.ts";

interface CollectionOptions {
  store: TaskStore;
  files: FileStore;
  count: number;
  library?: Pick<Library, "expect">;
  owner?: string;
}

/** Stores a collection of `count` tasks that runs; `finish` runs its next member to success, with a file of this content. */
export async function addCollection({ store, files, count, library, owner }: CollectionOptions) {
  const { id } = await store.create(newTask(pageUrl, { entries: "all" }, new Date(), owner));
  const { lease } = (await store.claim({ leaseMs: 60_000 }))!;
  const growth = { slice: { offset: 0, made: 0 } };
  await store.update(id, { kind: "collection", counts: noTasks, growth }, { lease });
  const members = Array.from({ length: count }, (_, n) => {
    const collection = { id, index: n + 1, title: "A list" };
    return { index: n + 1, task: { ...newTask(`${pageUrl}?n=${n}`, {}, new Date(), owner), collection } };
  });
  for (let at = 0; at < count; at += 200) {
    const isLast = at + 200 >= count;
    const slice = members.slice(at, at + 200);
    await store.grow(id, { lease, members: slice, isReusing: true, growth: isLast ? null : growth });
  }

  async function finish(info: Partial<PageInfo>, content: string): Promise<string> {
    const { task } = (await store.claim({ leaseMs: 60_000 }))!;
    await library?.expect(task.id);
    const saved = await saveFiles(files, task.id, Buffer.from(content), { name: "any.mp4" });
    await store.update(task.id, { info: pageInfo(info) });
    await store.update(task.id, { state: "succeeded", ...saved });
    return task.id;
  }

  return { id, finish };
}
