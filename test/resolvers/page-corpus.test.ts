import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { resolveFrom } from "./page/saved-client.ts";

const directory = resolve(process.env["CORPUS_DIR"] ?? "../shared/corpus");
const hasCorpus = existsSync(join(directory, "pages.json")) && existsSync(join(directory, "grade.py"));
const hasPython = spawnSync("python3", ["--version"]).status === 0;
const missing = hasCorpus ? "python3 is not installed" : `no corpus at ${directory} (CORPUS_DIR)`;

interface Summary {
  recall: number;
  precision: number;
  site_macro_recall: number;
  false_positive_video_fields_on_non_video_pages: string;
}

describe.skipIf(!hasCorpus || !hasPython)(`saved pages${hasCorpus && hasPython ? "" : `: ${missing}`}`, () => {
  const scratch = makeSharedFolder();
  let summary: Summary;

  beforeAll(async () => {
    const results = join(scratch, "results.jsonl");
    writeFileSync(results, await resolveAll());
    const graded = execFileSync("python3", [join(directory, "grade.py"), results, "--json"]);
    ({ summary } = JSON.parse(graded.toString()) as { summary: Summary });
  });

  it("yield at least 97 % of what they state", () => {
    expect(summary.recall).toBeGreaterThanOrEqual(0.97);
  });

  it("yield it on every site", () => {
    expect(summary.site_macro_recall).toBeGreaterThanOrEqual(0.97);
  });

  it("yield at most 1 % of wrong values", () => {
    expect(summary.precision).toBeGreaterThanOrEqual(0.99);
  });

  it("yield no video fields if there is no video", () => {
    expect(summary.false_positive_video_fields_on_non_video_pages).toMatch(/^0\/[1-9]/);
  });
});

async function resolveAll(): Promise<string> {
  const pages = JSON.parse(readFileSync(join(directory, "pages.json"), "utf8")) as {
    file: string;
    url: string;
    encoding: string;
  }[];
  const lines: string[] = [];
  for (const { file, url, encoding } of pages) {
    const charset = encoding.replace(/-bom$/, "").replace(/^cp/, "windows-");
    const response = {
      type: `text/html; charset=${charset}`,
      body: readFileSync(join(directory, file)),
    };
    const { href } = new URL(url);
    lines.push(JSON.stringify({ file, info: await resolveFrom({ [href]: response }, href) }));
  }
  return lines.join("\n");
}
