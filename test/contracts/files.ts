import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { randomUUIDv7 } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type FileStore, inUseMs, oldMs } from "../../src/files/files.ts";

/** The contract of `src/files/files.ts`; `open` returns an empty file store. */
export function describeFiles(name: string, open: () => FileStore): void {
  /** Opens a store with one result. */
  async function openKept() {
    const files = open();
    const id = randomUUIDv7();
    await keep(files, id, "content");
    return { files, id };
  }

  describe(`${name}, as any file store,`, () => {
    it("opens a work folder for a task, the same one each time", async () => {
      const files = open();
      const id = randomUUIDv7();
      const folder = await files.openWorkFolder(id);
      writeFileSync(join(folder, "part"), "x");
      expect(await files.openWorkFolder(id)).toBe(folder);
      expect(readdirSync(folder)).toEqual(["part"]);
    });

    it("opens a different work folder for each task", async () => {
      const files = open();
      const folders = [randomUUIDv7(), randomUUIDv7()].map((id) => files.openWorkFolder(id));
      expect(new Set(await Promise.all(folders)).size).toBe(2);
    });

    it("removes a work folder with its content; no error if there is none", async () => {
      const files = open();
      const id = randomUUIDv7();
      const folder = await files.openWorkFolder(id);
      writeFileSync(join(folder, "part"), "x");
      await files.removeWorkFolder(id);
      await expect(stat(folder)).rejects.toThrow("ENOENT");
      await files.removeWorkFolder(id);
    });

    it("removes an old work folder a week after the last write in it, and not before", async () => {
      const files = open();
      const id = randomUUIDv7();
      const folder = await files.openWorkFolder(id);
      const inner = join(folder, "parts");
      mkdirSync(inner);
      const part = join(inner, "part");
      writeFileSync(part, "x");
      const writtenMs = Date.now() - oldMs;
      const old = new Date(writtenMs - 1_000);
      for (const path of [part, inner, folder]) {
        expect(await files.removeOldWorkFolder(id)).toBe(false);
        utimesSync(path, old, old);
      }
      utimesSync(part, old, new Date(writtenMs + 60_000));
      expect(await files.removeOldWorkFolder(id)).toBe(false);
      utimesSync(part, old, old);
      expect(await files.removeOldWorkFolder(id)).toBe(true);
      await expect(stat(folder)).rejects.toThrow("ENOENT");
      for (const none of [id, "x", "../x"]) expect(await files.removeOldWorkFolder(none)).toBe(true);
    });

    it("says that a result is in use, until a minute after the last mark", async () => {
      const { files, id } = await openKept();
      const opened = (await files.open(id))!;
      const { mtimeMs } = await opened.handle.stat();
      await opened.markInUse();
      expect(await files.isInUse(id)).toBe(true);
      expect(Math.round((await opened.handle.stat()).mtimeMs)).toBe(Math.round(mtimeMs));
      await opened.handle.close();
      expect(await files.isInUse(id)).toBe(true);
      vi.useFakeTimers({ now: Date.now() + inUseMs, toFake: ["Date"] });
      onTestFinished(() => void vi.useRealTimers());
      expect(await files.isInUse(id)).toBe(false);
    });

    it("says that a result is not in use, however new it is, and removes it with what a run has left", async () => {
      const { files, id } = await openKept();
      expect(await read(files, id)).toBe("content");
      await files.openWorkFolder(id);
      expect(await files.isInUse(id)).toBe(false);
      await files.remove(id);
      expect(await files.ids()).toEqual([]);
      for (const none of [id, "x", "../x"]) expect(await files.isInUse(none)).toBe(false);
    });

    it("takes for unused a result that was read within the same millisecond", async () => {
      const { files, id } = await openKept();
      const now = Date.now();
      const { handle } = (await files.open(id))!;
      await handle.utimes((now + 0.9) / 1_000, new Date());
      await handle.close();
      vi.useFakeTimers({ now, toFake: ["Date"] });
      onTestFinished(() => void vi.useRealTimers());
      expect(await files.isInUse(id)).toBe(false);
    });

    it("takes a mark that ends in an hour for one of a clock that was set back", async () => {
      const { files, id } = await openKept();
      const { handle } = (await files.open(id))!;
      await handle.utimes(new Date(Date.now() + 3_600_000), new Date());
      await handle.close();
      expect(await files.isInUse(id)).toBe(false);
    });

    it("removes a result at once if it is asked to, in use or not", async () => {
      const { files, id } = await openKept();
      const opened = (await files.open(id))!;
      await opened.markInUse();
      await files.remove(id);
      expect(await files.open(id)).toBeUndefined();
      expect(await opened.handle.readFile("utf8")).toBe("content");
      await opened.handle.close();
    });

    it("saves a file as the task's result, and removes the work folder", async () => {
      const files = open();
      const id = randomUUIDv7();
      const folder = await keep(files, id, "content");
      expect(await read(files, id)).toBe("content");
      await expect(stat(folder)).rejects.toThrow("ENOENT");
    });

    it("has one result per task, the last that was saved", async () => {
      const files = open();
      const id = randomUUIDv7();
      await keep(files, id, "first");
      await keep(files, id, "second one");
      expect(await read(files, id)).toBe("second one");
    });

    it("saves other files with it, numbered from 1 on, and removes them with it", async () => {
      const files = open();
      const id = randomUUIDv7();
      await keep(files, id, "film", ["words", "picture"]);
      expect(await readAll(files, id)).toEqual(["film", "words", "picture", undefined]);
      expect(await files.ids()).toEqual([id]);
      await keep(files, id, "second film", ["new words"]);
      expect(await readAll(files, id)).toEqual(["second film", "new words", undefined, undefined]);
      await files.remove(id);
      expect(await readAll(files, id)).toEqual([undefined, undefined, undefined, undefined]);
      expect(await files.ids()).toEqual([]);
    });

    it("says that a result of which one of the other files is in use is", async () => {
      const files = open();
      const id = randomUUIDv7();
      await keep(files, id, "film", ["words"]);
      const opened = (await files.open(id, 1))!;
      await opened.markInUse();
      await opened.handle.close();
      expect(await files.isInUse(id)).toBe(true);
    });

    it("says of an open file whether it was removed", async () => {
      const files = open();
      const id = randomUUIDv7();
      await keep(files, id, "film", []);
      const opened = (await files.open(id))!;
      expect(await opened.markInUse()).toBe(true);
      await files.remove(id);
      expect(await opened.markInUse()).toBe(false);
      await opened.handle.close();
    });

    it("keeps the earlier result if one of the other files is missing", async () => {
      const files = open();
      const id = randomUUIDv7();
      await keep(files, id, "film", ["words"]);
      const folder = await files.openWorkFolder(id);
      writeFileSync(join(folder, "result"), "second film");
      const missing = [join(folder, "nothing")];
      await expect(files.saveResult(id, join(folder, "result"), missing)).rejects.toMatchObject({
        code: "unavailable",
      });
      expect(await readAll(files, id)).toEqual(["film", "words", undefined, undefined]);
    });

    it("rejects a missing file, and keeps the earlier result", async () => {
      const { files, id } = await openKept();
      const path = join(await files.openWorkFolder(id), "nothing");
      await expect(files.saveResult(id, path)).rejects.toMatchObject({ code: "unavailable" });
      expect(await read(files, id)).toBe("content");
    });

    it("has no result of a new task", async () => {
      const files = open();
      const id = randomUUIDv7();
      expect(await files.open(id)).toBeUndefined();
      await files.openWorkFolder(id);
      expect(await files.open(id)).toBeUndefined();
    });

    it("reads a result to its end if it is removed meanwhile", async () => {
      const { files, id } = await openKept();
      const opened = await files.open(id);
      await files.remove(id);
      expect(opened?.size).toBe(7);
      expect(await opened?.handle.readFile("utf8")).toBe("content");
      await opened?.handle.close();
      expect(await files.open(id)).toBeUndefined();
    });

    it("removes result and work folder; no error if there are none", async () => {
      const { files, id } = await openKept();
      await files.openWorkFolder(id);
      await files.remove(id);
      expect(await files.ids()).toEqual([]);
      await files.remove(id);
    });

    it("finds the tasks that have a result or a work folder, among few and among many", async () => {
      const files = open();
      const [kept, begun] = [randomUUIDv7(), randomUUIDv7()];
      await keep(files, kept, "x");
      await keep(files, randomUUIDv7(), "of a task that is not asked about");
      await files.openWorkFolder(begun);
      for (const others of [3, 3_000]) {
        const ids = [kept, begun, "x", "../x", ...Array.from({ length: others }, () => randomUUIDv7())];
        expect(await files.withFiles(ids)).toEqual(new Set([kept, begun]));
      }
      await files.remove(kept);
      await files.removeWorkFolder(begun);
      expect(await files.withFiles([kept, begun])).toEqual(new Set());
    });

    it("lists the tasks that have a result or a work folder, each once", async () => {
      const files = open();
      const [kept, begun, both] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()];
      expect(await files.ids()).toEqual([]);
      await keep(files, kept, "x");
      await files.openWorkFolder(begun);
      await keep(files, both, "x");
      await files.openWorkFolder(both);
      expect((await files.ids()).toSorted()).toEqual([kept, begun, both].toSorted());
    });

    it("tells the free space", async () => {
      expect(await open().freeBytes()).toBeGreaterThan(0);
    });

    it.each([
      "",
      ".",
      "..",
      "../../etc/passwd",
      "a/b",
      "0199d3f0-5b7e-7000-8000-0123456789ab/..",
      "0199D3F0-5B7E-7000-8000-0123456789AB",
      "0199d3f0-5b7e-7000-8000-0123456789ab\n",
      `0199d3f0-5b7e-7000-8000-0123456789ab\0`,
    ])("treats %j as an unknown id, never as a path", async (id) => {
      const files = open();
      const other = randomUUIDv7();
      const folder = await files.openWorkFolder(other);
      expect(await files.open(id)).toBeUndefined();
      await files.remove(id);
      await files.removeWorkFolder(id);
      await expect(files.openWorkFolder(id)).rejects.toMatchObject({ code: "not_found" });
      writeFileSync(join(folder, "part"), "x");
      await expect(files.saveResult(id, join(folder, "part"))).rejects.toMatchObject({
        code: "not_found",
      });
      expect(await readFile(join(folder, "part"), "utf8")).toBe("x");
    });
  });
}

async function keep(files: FileStore, id: string, content: string, others: readonly string[] = []): Promise<string> {
  const folder = await files.openWorkFolder(id);
  writeFileSync(join(folder, "part"), "a part");
  writeFileSync(join(folder, "result"), content);
  const paths = others.map((other, index) => {
    const path = join(folder, `other-${index}`);
    writeFileSync(path, other);
    return path;
  });
  await files.saveResult(id, join(folder, "result"), paths);
  return folder;
}

/** Returns the contents of the medium and the first three other files. */
function readAll(files: FileStore, id: string): Promise<(string | undefined)[]> {
  return Promise.all([0, 1, 2, 3].map((number) => read(files, id, number)));
}

async function read(files: FileStore, id: string, number?: number): Promise<string | undefined> {
  const opened = await files.open(id, number);
  const content = await opened?.handle.readFile("utf8");
  await opened?.handle.close();
  expect(opened?.size).toBe(content?.length);
  return content;
}
