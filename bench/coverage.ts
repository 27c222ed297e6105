import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { PageInfo } from "../src/model/page-info.ts";
import { findExtractors, findYtDlp } from "./coverage/extractors.ts";
import { readSavedPages, resolveSavedPage } from "./saved-pages.ts";
import { format, printTable, printTargets } from "./table.ts";

/**
 * How many of the saved pages of CORPUS_DIR with a video lead to a medium: `node bench/coverage.ts [--missing]`.
 * The page resolver reads each from its bytes; yt-dlp's extractors (YTDLP, else on PATH) are asked whether
 * they suit the page's URL and that of its embedded player. Nothing is fetched, so an extractor that suits
 * counts, whether or not its site still gives the video. `--missing` lists the pages without any.
 */
async function main(directory: string): Promise<void> {
  if (!existsSync(directory)) {
    console.log(`skipped: there are no saved pages at ${directory}; CORPUS_DIR names their directory`);
    return;
  }
  const pages = (await readSavedPages(directory)).filter(({ kind }) => videoKinds.has(kind));
  const infos = await Promise.all(pages.map((page) => resolveSavedPage(page)));
  const embeds = infos.map((info) => info?.embed?.url ?? null);
  const known = await askYtDlp([...pages.map(({ url }) => url), ...embeds.map((url) => url ?? "")]);
  const rows = pages.map(({ file, kind, url }, i) => ({
    file,
    kind,
    url,
    found: {
      vocabularies: hasFormats(infos[i]) && !isOfPlayer(infos[i]),
      player: hasFormats(infos[i]) && isOfPlayer(infos[i]),
      embed: embeds[i] !== null && known[pages.length + i] !== null,
      extractor: known[i] !== null,
    },
  }));
  report(rows);
  if (process.argv.includes("--missing")) {
    for (const { file, url, found } of rows) {
      if (!Object.values(found).includes(true)) console.log(`${file}  ${url}`);
    }
  }
}

/** Kinds of saved pages that have a video. */
const videoKinds = new Set(["video", "social-video", "article-with-video"]);

/** The ways to a medium, in the order in which a page is counted for one of them. */
const ways = {
  vocabularies: "the page's vocabularies",
  player: "data of the page's player",
  embed: "embedded player with an extractor",
  extractor: "extractor for the page's URL",
} as const;
type Way = keyof typeof ways;

interface Row {
  file: string;
  kind: string;
  url: string;
  found: Record<Way, boolean>;
}

const hasFormats = (info: PageInfo | null | undefined) => (info?.formats.length ?? 0) > 0;
const isOfPlayer = (info: PageInfo | null | undefined) => info?.sources["formats"] === "player";

/** Returns the extractor of each URL; none at all, with a line that says so, if there is no yt-dlp. */
async function askYtDlp(urls: readonly string[]): Promise<(string | null)[]> {
  const script = findYtDlp();
  if (script === undefined) {
    console.log("there is no yt-dlp: YTDLP or PATH can name one; its rows count as 0");
    return urls.map(() => null);
  }
  const { version, count, extractors } = await findExtractors(script, urls);
  console.log(`yt-dlp ${version}, ${count} extractors`);
  return extractors;
}

function report(rows: readonly Row[]): void {
  const share = (count: number) => `${format((100 * count) / rows.length)} %`;
  let total = 0;
  const lines = (Object.keys(ways) as Way[]).map((way, i, all) => {
    const found = rows.filter((row) => row.found[way]);
    const added = found.filter((row) => !all.slice(0, i).some((earlier) => row.found[earlier]));
    total += added.length;
    return [ways[way], `${found.length}`, `${added.length}`, `${total}`, share(total)];
  });
  printTable(
    `${rows.length} saved pages with a video`,
    ["a medium through", "pages", "new", "together", "share"],
    lines,
  );
  const byKind = Map.groupBy(rows, ({ kind }) => kind);
  printTable(
    "by kind of page",
    ["kind", "pages", "with a medium"],
    [...byKind].map(([kind, all]) => {
      const found = all.filter((row) => Object.values(row.found).includes(true));
      return [kind, `${all.length}`, `${found.length}`];
    }),
  );
  printTargets([
    {
      name: "saved pages with a video that lead to a medium",
      value: (100 * total) / rows.length,
      unit: "%",
      atLeast: 88,
    },
  ]);
}

await main(process.env["CORPUS_DIR"] ?? fileURLToPath(new URL("../../shared/corpus", import.meta.url)));
