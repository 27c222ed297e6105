import { expect, it } from "vitest";
import { readAhead } from "../../../src/resolvers/ytdlp/ytdlp-resolver.ts";
import type { ExtractOptions } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { asObject, asList } from "../../../src/parsers/json-values.ts";
import { createYtDlpResolver } from "../page/local-reader.ts";
import { createSavedClient } from "../page/saved-client.ts";
import { createRecordedYtDlp } from "./recorded.ts";

it("a list that is read again from its start has no entries that were read ahead before", async () => {
  let version = "old";
  const extract = readAhead({
    async extract(_, { entriesStart = 0, entriesAhead = 0 }: ExtractOptions) {
      const length = entriesStart === 0 ? 200 : 200 + entriesAhead;
      return { entries: Array.from({ length }, () => version), _has_more: true };
    },
  });
  const read = async (entriesStart: number, owner = "ann") => {
    const info = await extract(new URL("http://listed.example/"), { signal: AbortSignal.any([]), owner, entriesStart });
    return asList(asObject(info)["entries"])[0];
  };
  for (const owner of ["ann", "bob"]) await read(200, owner);
  version = "new";
  expect(await read(400)).toBe("old");
  expect(await read(0)).toBe("new");
  expect(await read(400)).toBe("new");
  expect(await read(400, "bob")).toBe("old");
});

it("an owner that asks about many URLs at once does not hold up another one", async () => {
  const asked: { path: string; answer: () => void }[] = [];
  const ytDlp = {
    ...createRecordedYtDlp({}),
    identify: ({ pathname: path }: URL) =>
      new Promise<undefined>((answer) => asked.push({ path, answer: () => answer(undefined) })),
  };
  const resolver = createYtDlpResolver({ ytDlp, client: createSavedClient({}) });
  const identify = async (path: string, owner: string) =>
    resolver.identify?.(new URL(path, "http://a.example"), AbortSignal.any([]), owner);
  const eves = Array.from({ length: 9 }, () => identify("/eve", "eve"));
  const bob = identify("/bob", "bob");
  await expect.poll(() => asked.map(({ path }) => path)).toEqual(["/eve", "/eve", "/bob"]);
  asked[2]?.answer();
  await bob;
  for (let n = 0; n < eves.length + 1; n += 1) {
    await expect.poll(() => asked.length).toBeGreaterThan(n);
    asked[n]?.answer();
  }
  await Promise.all(eves);
});
