import { expect, it } from "vitest";
import { foldName } from "../../../src/runner/library/names.ts";
import { parseTemplate } from "../../../src/runner/library/template.ts";
import { addCollection } from "../../http/finished-collection.ts";
import { readEntries } from "../../http/zip-entries.ts";
import type { PageInfo } from "../../../src/model/page-info.ts";
import { createLibraryHarness, oddTitles } from "./harness.ts";
import { openApp } from "../../http/open-app.ts";

/** Puts tasks of a collection into a library, one after the other; returns the paths there and those of the archive. */
async function placeAll(text: string, pages: readonly Partial<PageInfo>[]) {
  const { open, store, files, listed, untilPlaced } = createLibraryHarness();
  const template = parseTemplate(text);
  const library = await open({ template });
  library.start();
  const app = await openApp({ store, files, template });
  const { id, finish } = await addCollection({ store, files, count: pages.length, library });
  for (const [number, page] of pages.entries()) await untilPlaced(await finish(page, String(number)));
  const { rawPayload } = await app.inject(`/tasks/${id}/files.zip`);
  const names = readEntries(rawPayload).map(({ name }) => name);
  return { names, inLibrary: listed() };
}

it("files of an archive have the paths that they have in the library, whatever their pages say", async () => {
  const titles = [...oddTitles, "SAME"];
  const pages = [undefined, "../ann", "ANN", ".."].flatMap((uploader) =>
    titles.flatMap((title, n) => [
      { title, ...(uploader && { uploader, video_id: n % 2 === 0 ? "a" : "A" }) },
      { title },
    ]),
  );
  const { names, inLibrary } = await placeAll("{uploader}/{title} [{video_id}]", pages);
  expect(names.toSorted()).toEqual(inLibrary);
  expect(new Set(names.map(foldName)).size).toBe(pages.length);
  expect(names.filter((name) => /(^|\/)\.|\\|^\//.test(name))).toEqual([]);
  expect(names.flatMap((name) => name.split("/")).filter((name) => Buffer.byteLength(name) > 255)).toEqual([]);
});

it("a folder gets a number if a file has its name, there and in an archive", async () => {
  const { names, inLibrary } = await placeAll("{uploader}/{series}/{title}", [
    { uploader: "Ann", title: "B" },
    { uploader: "Ann", series: "b.MP4", title: "C" },
    { uploader: "Ann", series: "B.mp4", title: "D" },
  ]);
  expect(names).toEqual(["Ann/B.mp4", "Ann/b.MP4 (2)/C.mp4", "Ann/b.MP4 (2)/D.mp4"]);
  expect(inLibrary).toEqual(names);
});

it("a file gets a number if a folder has its name, there and in an archive", async () => {
  const { names, inLibrary } = await placeAll("{uploader}/{title}", [
    { uploader: "A.mp4", title: "C" },
    { title: "a" },
    { uploader: "Ann", title: "C" },
  ]);
  expect(names).toEqual(["A.mp4/C.mp4", "a (2).mp4", "Ann/C.mp4"]);
  expect(inLibrary).toEqual(names.toSorted());
});
