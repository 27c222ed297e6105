import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { isChromiumMissing, launchChromium } from "./chromium.ts";

if (isChromiumMissing) console.log("no Chromium (CHROMIUM): the tests of the page are skipped");

/** Opens one Chromium for all tests of the `describe` that this is called in. Returns what opens tabs in it. */
export function useBrowser(): OpenTab {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());
  return (service, options) => openTab(browser, service, options);
}

/** Opens a tab of a fresh profile at the address `service`; closed after the test. */
export type OpenTab = (service: string, options?: TabOptions) => Promise<Tab>;

export interface TabOptions extends BrowserContextOptions {
  /** What comes after the last slash of the service's address. */
  path?: string;
}

/**
 * A tab with the page. The test fails if it asks another origin for anything, breaks its policy, writes to the
 * console, throws an error that nobody catches, or moves what somebody reads.
 */
export interface Tab {
  page: Page;
  /** Lets Chromium write to the console that these requests have failed. */
  expectFailures(address: RegExp): void;
  /** Lets rows move from now on, as others above them come and go. */
  expectShifts(): void;
  /** Pastes the text into the address field, from a real clipboard. */
  paste(text: string): Promise<void>;
}

async function openTab(
  browser: Browser,
  service: string,
  { path = "", ...options }: TabOptions = {},
): Promise<Tab> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const problems: string[] = [];
  const expected: RegExp[] = [];
  const { origin } = new URL(service);
  context.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`request to ${request.url()}`);
  });
  context.on("weberror", (error) => void problems.push(`uncaught ${error.error().stack}`));
  context.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    const text = `${message.type()}: ${message.text()} ${message.location().url}`;
    if (!expected.some((pattern) => pattern.test(text))) problems.push(text);
  });
  onTestFinished(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  await context.addInitScript({ content: observer });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  await page.goto(new URL(path, service).href);
  return {
    page,
    expectFailures: (address) =>
      void expected.push(new RegExp(`^error: Failed to load resource: .*(?:${address.source})`)),
    expectShifts: () => void expected.push(/^error: layout shift: [\d.e-]+ <li>/),
    async paste(text) {
      const field = page.getByRole("textbox", { name: "Address of a page with a video" });
      await field.fill(text);
      await field.press("ControlOrMeta+a");
      await field.press("ControlOrMeta+x");
      await field.press("ControlOrMeta+v");
    },
  };
}

/** Runs in the page before its scripts. What shifts right after an input is what was asked for. */
const observer = `
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sample }) =>
    console.error("policy violation:", effectiveDirective, blockedURI, sample));
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
      const moved = sources.map(({ node }) => node?.outerHTML?.slice(0, 200) ?? String(node));
      if (!hadRecentInput) console.error("layout shift:", value, ...moved);
    }
  }).observe({ type: "layout-shift", buffered: true });
`;
