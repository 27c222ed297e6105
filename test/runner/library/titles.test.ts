import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { foldName } from "../../../src/runner/library/names.ts";
import { parseTemplate } from "../../../src/runner/library/template.ts";
import { createLibraryHarness, oddTitles } from "./harness.ts";

/** How many titles; over 200. */
const count = Number(process.env["TITLES"] ?? 240);

it(
  `a library has a file for each of ${count} titles, none over another and none outside`,
  { timeout: 300_000 },
  async () => {
    const { open, add, untilPlaced, listed, folder, dir } = createLibraryHarness();
    const library = await open({ template: parseTemplate("{uploader}/{title} [{video_id}]") });
    const titles = [...oddTitles, "..."];
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const title = titles[n % titles.length]!;
      // Each title 20 times without an id, then with ids that differ only in case, and in a folder.
      const rest =
        n < 200 ? {} : { video_id: n % 20 < 10 ? `v${n}` : `V${n - 10}`, uploader: n % 40 < 20 ? "../ann" : "ANN" };
      const { id, succeed } = await add(library, { title, ...rest });
      await succeed();
      ids.push(id);
    }
    library.start();
    for (const id of ids) await untilPlaced(id);
    const paths = listed();
    expect(paths).toHaveLength(count);
    expect(new Set(paths.map(foldName)).size).toBe(count);
    expect(paths.flatMap((path) => path.split("/")).filter((each) => Buffer.byteLength(each) > 255)).toEqual([]);
    expect(readdirSync(folder).toSorted()).toEqual(["data", "films"]);
    expect(paths.filter((path) => !existsSync(join(dir, path)))).toEqual([]);
  },
);
