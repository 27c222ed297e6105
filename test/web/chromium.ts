import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium } from "playwright-core";

/** The Chromium of CHROMIUM, else of Debian; undefined: there is none. */
const executablePath = [process.env["CHROMIUM"], "/usr/bin/chromium"].find(
  (path) => path !== undefined && existsSync(path),
);

export const isChromiumMissing = executablePath === undefined;

const options = {
  ...(executablePath !== undefined && { executablePath }),
  chromiumSandbox: process.getuid?.() !== 0,
};
const commonArgs = ["--disable-dev-shm-usage"];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ ...options, args: commonArgs });
}

/** Starts a Chromium with the unpacked extension in `folder`, and a profile that goes when it is closed. */
export function launchWithExtension(folder: string): Promise<BrowserContext> {
  const args = [...commonArgs, "--headless=new", `--disable-extensions-except=${folder}`, `--load-extension=${folder}`];
  return chromium.launchPersistentContext("", { ...options, args });
}
