import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../../src/files/disk.ts";
import { type LibraryOptions, openLibrary } from "../../../src/runner/library/library.ts";
import { defaultTemplate, parseTemplate } from "../../../src/runner/library/template.ts";
import type { PageInfo } from "../../../src/model/page-info.ts";
import type { ResultFile, Task } from "../../../src/model/task.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { saveFiles } from "../../http/finished-task.ts";
import { createTestLog } from "../../log.ts";
import { pageInfo } from "../../page-info.ts";

/** Thousands of files are flushed at once there. */
export const memoryDisk = "/dev/shm";

/** Titles that are hard to name files by; some are one name on some file systems. */
export const oddTitles: readonly string[] = [
  "🎬👩\u200D👩\u200D👧",
  "שלום\u202E",
  "..",
  "\u0000",
  "CON",
  "x".repeat(10_000),
  "same",
  "\u00e9",
  "e\u0301",
];

type OtherFile = Pick<ResultFile, "kind" | "name"> & Partial<ResultFile>;

/** Creates a folder for a library, a store and files of tasks; all are removed after the test. */
export function createLibraryHarness(store: TaskStore = createMemoryStore()) {
  const folder = mkdtempSync(join(existsSync(memoryDisk) ? memoryDisk : tmpdir(), "unreel-library-"));
  const dir = join(folder, "films");
  mkdirSync(dir);
  const files = openDiskFiles({ folder: join(folder, "data") });
  const { log, logger } = createTestLog();
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(options: Partial<LibraryOptions> = {}) {
    const library = await openLibrary({
      folder: dir,
      jobsFolder: join(folder, "data", "library"),
      store,
      files,
      template: parseTemplate(defaultTemplate),
      isLink: false,
      mode: 0o644,
      hasNfo: false,
      minFreeBytes: 0,
      isFiller: true,
      retryMs: 10,
      ...options,
      logger,
    });
    onTestFinished(() => library.stop());
    return library;
  }

  /** Stores a task that runs, and its files; `succeed` is its end. */
  async function add(
    library: Awaited<ReturnType<typeof open>>,
    info: Partial<PageInfo>,
    others: OtherFile[] = [],
    owner?: string,
  ) {
    const { id } = await store.create(newTask("https://example.com/watch", {}, new Date(), owner));
    while ((await store.claim({ leaseMs: 60_000 }))?.task.id !== id);
    await library.expect(id, owner);
    const withContent = ({ kind, name, mime_type = "text/vtt", ...about }: OtherFile) => {
      return { kind, name, mime_type, ...about, content: randomBytes(100) };
    };
    const saved = await saveFiles(files, id, randomBytes(100), { name: "x.mp4" }, others.map(withContent));
    await store.update(id, { info: pageInfo(info) });
    const succeed = () => store.update(id, { state: "succeeded", ...saved });
    return { id, succeed };
  }

  async function until(id: string, holds: (task: Task) => boolean): Promise<Task> {
    const read = async () => {
      const task = await store.get(id);
      return task !== undefined && holds(task) ? task : undefined;
    };
    const found = await vi.waitUntil(read, { timeout: 60_000, interval: 5 });
    return found;
  }

  return {
    store,
    files,
    folder,
    dir,
    log,
    open,
    add,
    until,
    untilPlaced: (id: string) => until(id, ({ library }) => library !== undefined),
    untilFailed: (id: string) => until(id, (task) => codesOf(task).includes("library_failed")),
    /** What is still to be done for a task. */
    jobsOf: (id: string) => readdirSync(join(folder, "data", "library")).filter((file) => file.startsWith(id)),
    /** All files of the library but its mark. */
    listed: () =>
      readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory() && entry.name !== ".unreel-library")
        .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
        .toSorted(),
  };
}

export function codesOf({ file }: Task): string[] {
  return file?.warnings?.map(({ code }) => code) ?? [];
}
