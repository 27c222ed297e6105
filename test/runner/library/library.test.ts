import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { parseTemplate } from "../../../src/runner/library/template.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../../folder.ts";
import { codesOf, createLibraryHarness, memoryDisk } from "./harness.ts";

const known = { uploader: "Ann", uploaded_at: "2026-01-02", title: "A film", video_id: "a1" };
const name = "Ann/2026-01-02 A film [a1]";

describe("a library", () => {
  it("says nothing of a file whose task is deleted before it is there", async () => {
    const inner = createMemoryStore();
    let hasDeleted = false;
    const harness = createLibraryHarness({
      ...inner,
      async get(id) {
        const task = await inner.get(id);
        if (hasDeleted || task?.state !== "succeeded") return task;
        hasDeleted = true;
        await inner.delete(id);
        await harness.files.remove(id);
        return task;
      },
    });
    const library = await harness.open();
    const first = await harness.add(library, known);
    const second = await harness.add(library, { ...known, title: "Another" });
    library.start();
    await first.succeed();
    await vi.waitUntil(() => hasDeleted, 60_000);
    await second.succeed();
    await harness.untilPlaced(second.id);
    await library.stop();
    expect(harness.log).toMatchObject([{ task: second.id, msg: "put into the library" }]);
  });

  it("gets the medium, its subtitles, its cover and what describes it, under names for people", async () => {
    const { open, add, untilPlaced, listed, dir, files } = createLibraryHarness();
    const library = await open({ hasNfo: true });
    const others = [
      { kind: "subtitles", name: "x.srt", language: "en" },
      { kind: "cover", name: "x.jpg" },
    ] as const;
    const { id, succeed } = await add(library, known, [...others]);
    library.start();
    await succeed();
    const task = await untilPlaced(id);
    const names = [`${name}-thumb.jpg`, `${name}.en.srt`, `${name}.mp4`, `${name}.nfo`];
    expect(listed()).toEqual(names);
    expect(task.library?.map(({ path }) => path).toSorted()).toEqual(names);
    const sha256 = createHash("sha256")
      .update(readFileSync(join(dir, `${name}.mp4`)))
      .digest("hex");
    expect(sha256).toBe(task.file?.sha256);
    expect(statSync(join(dir, `${name}.mp4`)).mode & 0o777).toBe(0o644);
    expect(statSync(join(dir, "Ann")).mode & 0o777).toBe(0o755);
    const result = await files.open(id);
    expect((await result?.handle.stat())?.nlink).toBe(1);
    await result?.handle.close();
    expect(codesOf(task)).toEqual([]);
  });

  it("gets hard links with LIBRARY_LINK=hard", async () => {
    const { open, add, untilPlaced, dir, files } = createLibraryHarness();
    const library = await open({ isLink: true });
    library.start();
    const { id, succeed } = await add(library, known);
    await succeed();
    await untilPlaced(id);
    const result = await files.open(id);
    expect(statSync(join(dir, `${name}.mp4`)).ino).toBe((await result?.handle.stat())?.ino);
    await result?.handle.close();
  });

  const hasTwoDisks = existsSync(memoryDisk) && statSync(memoryDisk).dev !== statSync(tmpdir()).dev;

  it.skipIf(!hasTwoDisks)("is refused at first if it is to have hard links to files of another disk", async () => {
    const { open, dir, folder } = createLibraryHarness();
    const other = makeFolder();
    const rule = "LIBRARY_DIR and DATA_DIR on one file system and, as in a container, in one mount of it";
    await expect(open({ folder: other, isLink: true })).rejects.toThrow(
      `LIBRARY_LINK=hard needs ${rule}; got ${join(folder, "data", "library")} and ${other}`,
    );
    expect(readdirSync(other)).toEqual([]);
    await open({ folder: other });
    await open({ isLink: true });
    expect(readdirSync(dir)).toEqual([]);
  });

  it("is opened for hard links also while nothing can be written to DATA_DIR", async () => {
    const { open, folder } = createLibraryHarness();
    const jobsFolder = join(folder, "jobs");
    symlinkSync(join(folder, "missing", "disk"), jobsFolder);
    await expect(open({ jobsFolder, isLink: true })).resolves.toBeDefined();
  });

  it("gets nothing of a task that fails", async () => {
    const { open, add, store, listed, folder } = createLibraryHarness();
    const library = await open();
    library.start();
    const { id } = await add(library, known);
    await store.update(id, { state: "failed", error: { code: "no_media", message: "x", retryable: false } });
    const jobs = join(folder, "data", "library");
    await vi.waitUntil(() => !existsSync(join(jobs, `${id}.json`)), 60_000);
    expect(listed()).toEqual([]);
  });

  it("never takes the name of another file, in whatever case or normal form", async () => {
    const { open, add, untilPlaced, dir, listed } = createLibraryHarness();
    writeFileSync(join(dir, "CAFE\u0301.MP4"), "not ours");
    mkdirSync(join(dir, "ann"));
    const template = parseTemplate("{uploader}/{title}");
    const library = await open({ template });
    library.start();
    const place = async (fields: object) => {
      const { id, succeed } = await add(library, fields);
      await succeed();
      await untilPlaced(id);
    };
    await place({ title: "Café" });
    await place({ title: "cafe\u0301" });
    await place({ uploader: "Ann", title: "Café" });
    expect(listed()).toEqual(["CAFE\u0301.MP4", "Café (2).mp4", "ann/Café.mp4", "café (3).mp4"].toSorted());
    expect(readFileSync(join(dir, "CAFE\u0301.MP4"), "utf8")).toBe("not ours");
  });
});

describe("a library that cannot be written to", () => {
  it("follows no symbolic link, and gets the file once that is gone", async () => {
    const { open, add, untilFailed, untilPlaced, folder, dir, listed } = createLibraryHarness();
    mkdirSync(join(folder, "outside"));
    symlinkSync(join(folder, "outside"), join(dir, "Ann"));
    const library = await open();
    library.start();
    const { id, succeed } = await add(library, known);
    await succeed();
    const failed = await untilFailed(id);
    expect(failed.state).toBe("succeeded");
    expect(failed.file?.warnings?.[0]?.message).toBe('"Ann" in LIBRARY_DIR must be a folder, and is a symbolic link');
    expect(readdirSync(join(folder, "outside"))).toEqual([]);
    rmSync(join(dir, "Ann"));
    expect(codesOf(await untilPlaced(id))).toEqual([]);
    expect(listed()).toEqual([`${name}.mp4`]);
  });

  it("leaves an empty folder alone that is where its disk was, also after a restart", async () => {
    const { open, add, untilFailed, untilPlaced, folder, dir, listed } = createLibraryHarness();
    const library = await open();
    library.start();
    const first = await add(library, known);
    await first.succeed();
    await untilPlaced(first.id);
    renameSync(dir, join(folder, "unmounted"));
    mkdirSync(dir);
    const second = await add(library, { ...known, video_id: "a2" });
    await second.succeed();
    await untilFailed(second.id);
    await library.stop();
    rmSync(dir, { recursive: true });
    const next = await open();
    next.start();
    await untilFailed(second.id);
    renameSync(join(folder, "unmounted"), dir);
    expect(codesOf(await untilPlaced(second.id))).toEqual([]);
    expect(listed()).toHaveLength(2);
  });

  it("is refused if others have put very many bytes in the place of its mark, which are not read", async () => {
    const { open, add, untilPlaced, untilFailed, dir } = createLibraryHarness();
    const library = await open();
    library.start();
    const first = await add(library, known);
    await first.succeed();
    await untilPlaced(first.id);
    truncateSync(join(dir, ".unreel-library"), 600_000_000);
    const second = await add(library, { ...known, video_id: "a2" });
    await second.succeed();
    const { file } = await untilFailed(second.id);
    expect(file?.warnings?.at(-1)?.message).toContain("its file .unreel-library is another one");
  });

  it.each([
    ["a pipe", (path: string) => void execFileSync("mkfifo", [path])],
    ["a device", (path: string) => symlinkSync("/dev/zero", path)],
    ["a folder", (path: string) => mkdirSync(path)],
    ["damaged", (path: string) => writeFileSync(path, "{")],
  ])("is refused at once if what was noted of it is %s, and taken again without that", async (_, spoil) => {
    const { folder, open, add, untilPlaced } = createLibraryHarness();
    const first = await open();
    first.start();
    const { id, succeed } = await add(first, { title: "One" });
    await succeed();
    await untilPlaced(id);
    await first.stop();
    const memory = join(folder, "data", "library", "folder.json");
    rmSync(memory);
    spoil(memory);
    await expect(open()).rejects.toThrow(
      /folder\.json must say which folder was used before: .*; if LIBRARY_DIR .* remove it$/,
    );
    rmSync(memory, { recursive: true });
    const second = await open();
    second.start();
    const other = await add(second, { title: "Two" });
    await other.succeed();
    await untilPlaced(other.id);
  });

  it("must exist when it is first used", async () => {
    const { open, dir } = createLibraryHarness();
    rmSync(dir, { recursive: true });
    await expect(open()).rejects.toThrow(/^LIBRARY_DIR must be a folder that exists, got /);
  });

  it("leaves nothing on a disk that is too full, and says so", async () => {
    const { open, add, untilFailed, listed } = createLibraryHarness();
    const library = await open({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    library.start();
    const { id, succeed } = await add(library, known);
    await succeed();
    const { file } = await untilFailed(id);
    expect(file?.warnings?.[0]?.message).toMatch(/not enough space in LIBRARY_DIR/);
    // It tries again all the time.
    await library.stop();
    expect(listed()).toEqual([]);
  });
});

it("says nothing of a file that was being put there when the service stopped", async () => {
  const { open, add, files, log } = createLibraryHarness();
  const [opening, stopping] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: typeof files = {
    ...files,
    async open(...result) {
      opening.resolve();
      await stopping.promise;
      return files.open(...result);
    },
  };
  const library = await open({ files: slow });
  library.start();
  const { succeed } = await add(library, known);
  await succeed();
  await opening.promise;
  const stopped = library.stop();
  stopping.resolve();
  await stopped;
  expect(log.map(({ msg }) => msg)).toEqual([]);
});

it("a task that succeeds while the library is away tries only one of those again that wait for it", async () => {
  const inner = createMemoryStore();
  let newest: string | undefined;
  let readsOfOthers = 0;
  const store: typeof inner = {
    ...inner,
    get(id) {
      readsOfOthers += Number(id !== newest);
      return inner.get(id);
    },
  };
  const { open, add, untilPlaced, untilFailed, dir, folder, listed } = createLibraryHarness(store);
  const library = await open({ retryMs: 60_000 });
  library.start();
  const first = await add(library, known);
  await first.succeed();
  await untilPlaced(first.id);
  renameSync(dir, join(folder, "unmounted"));
  const ids: string[] = [];
  for (let n = 0; n < 50; n += 1) {
    const { id, succeed } = await add(library, { ...known, video_id: `b${n}` });
    newest = id;
    await succeed();
    await untilFailed(id);
    ids.push(id);
  }
  // Of all those before it, each success would read 1,225.
  expect(readsOfOthers).toBeLessThan(300);
  renameSync(join(folder, "unmounted"), dir);
  const last = await add(library, { ...known, video_id: "c" });
  await last.succeed();
  for (const id of [...ids, last.id]) await untilPlaced(id);
  expect(listed()).toHaveLength(52);
});

it.each([
  ["a symbolic link", (path: string) => symlinkSync(path, path)],
  ["a folder", (path: string) => mkdirSync(path)],
])("a job that has become %s, which the log says once, leaves the others their turns", async (_, spoil) => {
  const { open, add, untilPlaced, folder, log } = createLibraryHarness();
  const library = await open();
  const spoiled = await add(library, { title: "One" });
  const path = join(folder, "data", "library", `${spoiled.id}.json`);
  rmSync(path);
  spoil(path);
  library.start();
  await spoiled.succeed();
  const other = await add(library, { title: "Two" });
  await other.succeed();
  await untilPlaced(other.id);
  const isOfSpoiled = ({ task }: { task?: unknown }) => task === spoiled.id;
  expect(log.filter(isOfSpoiled).map(({ msg }) => msg)).toEqual([
    "a job of the library cannot be read; retrying every minute",
  ]);
});

it("a process that dies before it has stored where the files are finds them again", async () => {
  const inner = createMemoryStore();
  const fault = { isArmed: false };
  const store: typeof inner = {
    ...inner,
    update: (id, change, options) =>
      fault.isArmed && change.library !== undefined
        ? Promise.reject(new ServiceError("unavailable", "down"))
        : inner.update(id, change, options),
  };
  const { open, add, untilPlaced, listed } = createLibraryHarness(store);
  const first = await open();
  const { id, succeed } = await add(first, known, [{ kind: "subtitles", name: "x.vtt", language: "en" }]);
  await succeed();
  fault.isArmed = true;
  first.start();
  await vi.waitUntil(() => listed().length === 2, 60_000);
  await first.stop();
  fault.isArmed = false;
  const second = await open();
  second.start();
  const task = await untilPlaced(id);
  expect(task.library?.map(({ path }) => path)).toEqual([`${name}.mp4`, `${name}.en.vtt`]);
  expect(listed()).toHaveLength(2);
});

it("several processes put each file there once", async () => {
  const { open, add, untilPlaced, listed, log } = createLibraryHarness();
  const libraries = [await open(), await open(), await open()];
  for (const library of libraries) library.start();
  const ids: string[] = [];
  for (let n = 0; n < 60; n += 1) {
    const { id, succeed } = await add(libraries[n % 3]!, { title: "A film" });
    await succeed();
    ids.push(id);
  }
  for (const id of ids) await untilPlaced(id);
  for (const library of libraries) await library.stop();
  expect(listed()).toHaveLength(60);
  expect(log.filter(({ msg }) => msg === "put into the library")).toHaveLength(60);
});

it("services with nothing in common but the folder put their files there at once, under names of their own", async () => {
  const harnesses = [createLibraryHarness(), createLibraryHarness(), createLibraryHarness()];
  const [{ dir, listed }] = harnesses as [(typeof harnesses)[0]];
  const placed = harnesses.map(async ({ open, add, untilPlaced, log }) => {
    const library = await open({ folder: dir, retryMs: 60_000 });
    const added = [];
    for (let n = 0; n < 20; n += 1) added.push(await add(library, { title: "A film", uploader: `Ann ${n}` }));
    for (const { succeed } of added) await succeed();
    library.start();
    for (const { id } of added) await untilPlaced(id);
    return log.filter(({ err, code }) => err !== undefined || code !== undefined);
  });
  expect(await Promise.all(placed)).toEqual([[], [], []]);
  expect(new Set(listed()).size).toBe(60);
});

describe("removing a task's files from the library", () => {
  it("leaves those that have been changed since, and other files", async () => {
    const { open, add, untilPlaced, listed, dir } = createLibraryHarness();
    const library = await open();
    library.start();
    const { id, succeed } = await add(library, known, [{ kind: "subtitles", name: "x.vtt", language: "en" }]);
    await succeed();
    const task = await untilPlaced(id);
    writeFileSync(join(dir, `${name}.en.vtt`), "changed");
    writeFileSync(join(dir, "Ann", "other"), "x");
    await library.remove(task);
    expect(listed()).toEqual([`${name}.en.vtt`, "Ann/other"].toSorted());
  });

  it("removes what a process has put there that then died", async () => {
    const { open, add, store, listed, dir, folder } = createLibraryHarness();
    const first = await open();
    const { id, succeed } = await add(first, known, [{ kind: "subtitles", name: "x.vtt", language: "en" }]);
    const task = await succeed();
    // The second of its files cannot be put there.
    rmSync(join(folder, "data", "others", id, "1"));
    first.start();
    await vi.waitUntil(() => listed().length === 1, 60_000);
    await first.stop();
    const second = await open();
    await second.remove(task);
    await store.delete(id);
    writeFileSync(join(dir, "Ann", "other"), "x");
    second.start();
    await vi.waitUntil(() => listed().join() === "Ann/other", 60_000);
  });

  it("removes what is being put there meanwhile", async () => {
    const { store, open, add, listed, jobsOf } = createLibraryHarness();
    const library = await open();
    const { id, succeed } = await add(library, known);
    const task = await succeed();
    library.start();
    await library.remove(task);
    await store.delete(id);
    await vi.waitUntil(() => jobsOf(id).length === 0, 60_000);
    expect(listed()).toEqual([]);
  });

  it("removes what was put there after the task was read, however many ask for it at once", async () => {
    const { open, add, untilPlaced, listed, jobsOf } = createLibraryHarness();
    const library = await open();
    const { id, succeed } = await add(library, known);
    const task = await succeed();
    library.start();
    await untilPlaced(id);
    await vi.waitUntil(() => jobsOf(id).length === 0, 60_000);
    await Promise.all(Array.from({ length: 20 }, () => library.remove(task)));
    await vi.waitUntil(() => jobsOf(id).length === 0, 60_000);
    expect(listed()).toEqual([]);
  });

  it("has the last word over what is to be put there, also of other processes", async () => {
    const { store, open, add, listed, jobsOf } = createLibraryHarness();
    const asking: Promise<void>[] = [];
    const api = await open({ isFiller: false });
    const filler = await open({
      store: {
        ...store,
        async update(id, change, ...others) {
          // As late as the filler can be asked: its files are there, and it is about to say so.
          if (change.library !== undefined) asking.push(api.remove(task));
          return store.update(id, change, ...others);
        },
      },
    });
    const { id, succeed } = await add(filler, known);
    const task = await succeed();
    // It does not fill the library, also if it is started.
    api.start();
    filler.start();
    await vi.waitUntil(() => asking.length > 0 && jobsOf(id).length === 0, 60_000);
    await Promise.all(asking);
    await vi.waitUntil(() => listed().length === 0, 60_000);
  });

  it("is done later if the folder is away, which the log says once, however often it is tried", async () => {
    const { open, add, untilPlaced, untilFailed, store, listed, jobsOf, dir, folder, log } = createLibraryHarness();
    const library = await open();
    library.start();
    const { id, succeed } = await add(library, known);
    await succeed();
    const task = await untilPlaced(id);
    const [placed] = listed();
    renameSync(dir, join(folder, "unmounted"));
    await library.remove(task);
    await store.delete(id);
    // Each is tried in a pass of its own.
    for (const title of ["A second film", "A third film"]) {
      const other = await add(library, { title });
      await other.succeed();
      await untilFailed(other.id);
    }
    const notRemoved = "files could not be removed from the library; retrying every minute";
    const said = log.filter(({ task: of, msg }) => of === id && msg === notRemoved);
    // One line: a stack would say nothing more.
    expect(said).toEqual([expect.objectContaining({ code: "unavailable", reason: expect.any(String) })]);
    expect(said[0]).not.toHaveProperty("err");
    renameSync(join(folder, "unmounted"), dir);
    await vi.waitUntil(() => jobsOf(id).length === 0, 60_000);
    expect(placed).toBeDefined();
    expect(listed()).not.toContain(placed);
  });
});
