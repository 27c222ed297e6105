import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  ConsoleMessage,
  Page,
  Request,
  WebError,
} from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { isChromiumMissing, launchChromium } from "./chromium.ts";

if (isChromiumMissing) console.log("no Chromium (CHROMIUM): the tests of the page are skipped");

/**
 * Opens one Chromium for all tests of the `describe` that this is called in. Returns what opens tabs in it: one is used by many
 * tests, one after the other, as opening another takes longer than most of them.
 */
export function useBrowser(): OpenTab {
  let browser: Browser;
  let profile: BrowserContext;
  let kept: Page | undefined;
  let isTaken = false;
  beforeAll(async () => {
    browser = await launchChromium();
    profile = await newProfile(browser);
  });
  afterAll(() => browser?.close());
  return async (service, { path = "", hasClock = false, ...options } = {}) => {
    const url = new URL(path, service);
    if (isTaken || hasClock || Object.keys(options).length > 0) {
      const context = await newProfile(browser, options);
      onTestFinished(() => context.close());
      return openTab(context, url, hasClock);
    }
    isTaken = true;
    onTestFinished(async () => {
      kept = await clear(profile, kept);
      isTaken = false;
    });
    const tab = await openTab(profile, url, false, kept);
    kept = tab.page;
    return tab;
  };
}

const firstSize = { width: 1280, height: 720 };

async function newProfile(browser: Browser, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ reducedMotion: "reduce", viewport: firstSize, ...options });
  await context.addInitScript({ content: observer });
  context.setDefaultTimeout(120_000);
  return context;
}

/** Leaves nothing of a test but the assets that never change, and an empty tab: the page stores nothing but cookies. */
async function clear(context: BrowserContext, kept: Page | undefined): Promise<Page | undefined> {
  for (const page of context.pages()) if (page !== kept) await page.close();
  await context.clearCookies();
  await context.setOffline(false);
  if (kept === undefined || kept.isClosed()) return undefined;
  await kept.unrouteAll();
  await kept.mouse.move(0, 0);
  await kept.emulateMedia({ colorScheme: "light" });
  await kept.setViewportSize(firstSize);
  try {
    // Another origin, even none, would get a process of its own.
    await kept.goto(new URL("/empty", kept.url()).href);
    return kept;
  } catch {
    // The service is closed.
    await kept.close();
    return undefined;
  }
}

/** Opens a tab at the address `service`, in a profile without cookies; closed after the test. */
export type OpenTab = (service: string, options?: TabOptions) => Promise<Tab>;

interface TabOptions extends BrowserContextOptions {
  /** What comes after the last slash of the service's address. */
  path?: string;
  /** Whether `page.clock` can move the page's time forward. */
  hasClock?: boolean;
}

/**
 * A tab with the page. The test fails if it asks another origin for anything, breaks its policy, writes to the
 * console, throws an error that nobody catches, or moves what somebody reads.
 */
export interface Tab {
  page: Page;
  /** Lets Chromium write to the console that these requests have failed. */
  expectFailures(address: RegExp): void;
  /** Lets rows, or elements that begin so, move from now on, as others above them come and go. */
  expectShifts(start?: string): void;
  /** Pastes the text into the address field, from a real clipboard. */
  paste(text: string): Promise<void>;
}

async function openTab(context: BrowserContext, { href, origin }: URL, hasClock: boolean, kept?: Page): Promise<Tab> {
  const problems: string[] = [];
  const expected: RegExp[] = [];
  const onRequest = (request: Request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`request to ${request.url()}`);
  };
  const onError = (error: WebError) => void problems.push(`uncaught ${error.error().stack}`);
  const onConsole = (message: ConsoleMessage) => {
    if (!["error", "warning"].includes(message.type())) return;
    // Of the empty page between two tests, for which Chromium may ask late; the page names its own icon.
    if (message.location().url.endsWith("/favicon.ico")) return;
    const text = `${message.type()}: ${message.text()} ${message.location().url}`;
    if (!expected.some((pattern) => pattern.test(text))) problems.push(text);
  };
  context.on("request", onRequest).on("weberror", onError).on("console", onConsole);
  // Called before the tab is closed.
  onTestFinished(() => {
    context.off("request", onRequest).off("weberror", onError).off("console", onConsole);
    expect(problems).toEqual([]);
  });
  const page = kept ?? (await context.newPage());
  if (hasClock) await page.clock.install();
  await page.goto(href);
  return {
    page,
    expectFailures: (address) =>
      void expected.push(new RegExp(`^error: Failed to load resource: .*(?:${address.source})`)),
    expectShifts: (start = "<li>") => void expected.push(new RegExp(`^error: layout shift: [\\d.e-]+ ${start}`)),
    async paste(text) {
      // One that is being closed still has the focus.
      await page.locator("dialog[open]").waitFor({ state: "detached" });
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
