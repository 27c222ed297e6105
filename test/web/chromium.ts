import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium } from "playwright-core";

const installed = [process.env["CHROMIUM"], "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].filter(
  (path) => path !== undefined && existsSync(path),
);

/** The Chromium of CHROMIUM, else of Debian: rather the one without windows, which takes less processor time. */
const [executablePath] = installed;

/** One with windows, as extensions need. */
const withWindows = installed.find((path) => !path?.endsWith("headless-shell"));

export const isChromiumMissing = executablePath === undefined;
export const isExtensionChromiumMissing = withWindows === undefined;

const optionsFor = (path: string | undefined) => ({
  ...(path !== undefined && { executablePath: path }),
  chromiumSandbox: process.getuid?.() !== 0,
});
const commonArgs = ["--disable-dev-shm-usage"];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ ...optionsFor(executablePath), args: commonArgs });
}

/** Starts a Chromium with the unpacked extension in `folder`, and a profile that goes when it is closed. */
export function launchWithExtension(folder: string): Promise<BrowserContext> {
  const args = [...commonArgs, "--headless=new", `--disable-extensions-except=${folder}`, `--load-extension=${folder}`];
  return chromium.launchPersistentContext("", { ...optionsFor(withWindows), args });
}
