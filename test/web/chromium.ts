import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium } from "playwright-core";

const installed = [process.env["CHROMIUM"], "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].filter(
  (path) => path !== undefined && existsSync(path),
);

/** The Chromium of CHROMIUM, else of Debian: preferably its headless shell, which takes less processor time. */
const [executablePath] = installed;

/** The whole browser, which extensions need. */
const wholeBrowserPath = installed.find((path) => !path?.endsWith("headless-shell"));

export const isChromiumMissing = executablePath === undefined;
export const isWholeChromiumMissing = wholeBrowserPath === undefined;

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
  return chromium.launchPersistentContext("", { ...optionsFor(wholeBrowserPath), args });
}
