import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../../src/files/disk.ts";
import { type LibraryOptions, openLibrary } from "../../../src/runner/library/library.ts";
import { defaultTemplate, parseTemplate } from "../../../src/runner/library/template.ts";
import type { PageInfo } from "../../../src/model/page-info.ts";
import type { ResultFile, Task } from "../../../src/model/task.ts";
import { createMemoryStore } from "../../../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { createTestLog } from "../../log.ts";
import { pageInfo } from "../../page-info.ts";

/** Thousands of files are flushed at once there. */
const memoryDisk = "/dev/shm";

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
  async function add(library: Awaited<ReturnType<typeof open>>, info: Partial<PageInfo>, others: OtherFile[] = []) {
    const { id } = await store.create(newTask("https://example.com/watch", {}, new Date()));
    while ((await store.claim({ leaseMs: 60_000 }))?.task.id !== id);
    const workFolder = await files.openWorkFolder(id);
    const listed: OtherFile[] = [{ kind: "media", name: "x.mp4", mime_type: "video/mp4" }, ...others];
    const made: ResultFile[] = [];
    for (const [number, file] of listed.entries()) {
      const bytes = randomBytes(100);
      await writeFile(join(workFolder, String(number)), bytes);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      made.push({ mime_type: "text/vtt", url: `/${number}`, size: bytes.length, sha256, ...file });
    }
    await library.expect(id);
    const [medium, ...rest] = made.map((_, number) => join(workFolder, String(number)));
    await files.saveResult(id, medium ?? "", rest);
    const { mime_type, size, sha256 } = made[0]!;
    const about = { name: "x.mp4", mime_type, size, sha256, duration: 60, width: 1, height: 1, url: "/", warnings: [] };
    await store.update(id, { info: pageInfo(info) });
    const succeed = () => store.update(id, { state: "succeeded", file: about, files: made });
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
