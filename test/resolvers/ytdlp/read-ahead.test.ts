import { expect, it } from "vitest";
import { readAhead } from "../../../src/resolvers/ytdlp/read-ahead.ts";
import type { ExtractOptions } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { asDict, asList } from "../../../src/resolvers/ytdlp/info-dict.ts";

it("a list that is read anew from its start has no entries that were read ahead before", async () => {
  let version = "old";
  const extract = readAhead({
    async extract(_, { entriesStart = 0, entriesAhead = 0 }: ExtractOptions) {
      const length = entriesStart === 0 ? 200 : 200 + entriesAhead;
      return { entries: Array.from({ length }, () => version), _has_more: true };
    },
  });
  const read = async (entriesStart: number, owner = "ann") => {
    const info = await extract(new URL("http://listed.example/"), { signal: AbortSignal.any([]), owner, entriesStart });
    return asList(asDict(info)["entries"])[0];
  };
  for (const owner of ["ann", "bob"]) await read(200, owner);
  version = "new";
  expect(await read(400)).toBe("old");
  expect(await read(0)).toBe("new");
  expect(await read(400)).toBe("new");
  expect(await read(400, "bob")).toBe("old");
});
