import { readFileSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG 2.2, levels A and AA. */
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

const bothSchemes = ["light", "dark"] as const;
export const widths = [320, 800, 1920];

/** Where screenshots go: the folder SCREENSHOTS, else a new one. */
export async function openScreenshots(): Promise<string> {
  const folder = process.env["SCREENSHOTS"];
  if (folder === undefined) return mkdtemp(join(tmpdir(), "unreel-screenshots-"));
  await mkdir(folder, { recursive: true });
  return folder;
}

/**
 * Expects of the page as it is, in each of the colour schemes and at each width, that it meets WCAG 2.2 AA and does not scroll
 * sideways. Keeps a screenshot of each as `folder/name-scheme-width.png`.
 */
export async function inspect(
  page: Page,
  folder: string,
  name: string,
  schemes: readonly ("light" | "dark")[] = bothSchemes,
): Promise<void> {
  await page.evaluate(`${axe}; undefined`);
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      const where = `${name}-${colorScheme}-${width}`;
      await page.screenshot({ path: join(folder, `${where}.png`), fullPage: true });
      expect([where, await sidewaysScroll(page)]).toEqual([where, []]);
      expect([where, await violations(page)]).toEqual([where, []]);
    }
  }
}

/** Returns what is wider than it may be: the page, or an open dialog. */
export async function sidewaysScroll(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(
    `[document.documentElement, ...document.querySelectorAll("dialog[open]")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ tagName, scrollWidth, clientWidth }) => tagName + ": " + scrollWidth + " > " + clientWidth)`,
  );
}

async function violations(page: Page): Promise<string[]> {
  const options = { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] };
  const results = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  return results.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
  );
}
