import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** The Chromium of CHROMIUM, else of Debian; undefined: there is none. */
const executablePath = [process.env["CHROMIUM"], "/usr/bin/chromium"].find(
  (path) => path !== undefined && existsSync(path),
);

export const isChromiumMissing = executablePath === undefined;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    ...(executablePath !== undefined && { executablePath }),
    args: ["--disable-dev-shm-usage"],
    chromiumSandbox: process.getuid?.() !== 0,
  });
}
