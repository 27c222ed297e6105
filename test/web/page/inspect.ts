import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG 2.2, levels A and AA. */
const allRules = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] };

/** Those of them that a colour scheme can break: the style sheet gives it nothing but colours. */
const colorRules = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** Those of them that another width, where the style sheet gives both the same layout, or another text can break. */
const placeRules = { type: "rule", values: ["scrollable-region-focusable", "target-size"] };

const bothSchemes = ["light", "dark"] as const;
export const widths = [320, 800, 1920];

/** A width of the same layout as the largest one: `layoutChanges` of the style sheet are below it. */
const intermediate = 800;

/** The widths at which the style sheet changes the layout, as it says them. */
export function layoutChanges(): string[] {
  const css = readFileSync(new URL("../../../src/web/style.css", import.meta.url), "utf8");
  return [...new Set([...css.matchAll(/@(?:media|container)[^{]*width[^{]*/g)].map(([text]) => text.trim()))];
}

/** Where screenshots go; undefined: none are taken. */
export const screenshots = process.env["SCREENSHOTS"];

/**
 * Expects of the page as it is, in each of the colour schemes and at each width, that it meets WCAG 2.2 AA and does not scroll
 * sideways. With SCREENSHOTS, keeps one of each there, as `name-scheme-width.png`.
 */
export async function inspect(page: Page, name: string): Promise<void> {
  await page.evaluate(`${axe}; undefined`);
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    const inspected = width === intermediate && screenshots === undefined ? bothSchemes.slice(0, 1) : bothSchemes;
    for (const [n, colorScheme] of inspected.entries()) {
      await page.emulateMedia({ colorScheme });
      const where = `${name}-${colorScheme}-${width}`;
      if (screenshots !== undefined) {
        await page.screenshot({ path: join(screenshots, `${where}.png`), fullPage: true });
      }
      await expectNothing(page, where, n > 0 ? colorRules : width === intermediate ? placeRules : allRules);
    }
  }
}

/** Expects at each width what other texts in a state that is inspected can break: that it does not scroll sideways, and where things are. */
export async function inspectLayout(page: Page, name: string): Promise<void> {
  await page.evaluate(`${axe}; undefined`);
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    await expectNothing(page, `${name}-${width}`, placeRules);
  }
}

async function expectNothing(page: Page, where: string, rules: object): Promise<void> {
  expect([where, await sidewaysScroll(page)]).toEqual([where, []]);
  expect([where, await violations(page, rules)]).toEqual([where, []]);
}

/** Returns what is wider than it may be: the page, or an open dialog. */
async function sidewaysScroll(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(
    `[document.documentElement, ...document.querySelectorAll("dialog[open]")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ tagName, scrollWidth, clientWidth }) => tagName + ": " + scrollWidth + " > " + clientWidth)`,
  );
}

async function violations(page: Page, runOnly: object): Promise<string[]> {
  const options = { runOnly, resultTypes: ["violations"] };
  const results = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  return results.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
  );
}
