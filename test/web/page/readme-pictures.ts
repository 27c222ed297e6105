import { readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { resource } from "../../media/resources.ts";
import { startTestSite } from "../../media/test-site.ts";
import type { OpenTab } from "../browser.ts";
import { makeFolder } from "../../folder.ts";
import { filmPage, format } from "./found-pages.ts";
import { screenshots } from "./inspect.ts";
import { landscape } from "./landscape.ts";
import { openApp } from "./open-app.ts";
import { loadedImages } from "./states.ts";
import { addDone, addRunning } from "./stored-tasks.ts";

const names = ["readme-found.webp", "readme-downloads.webp"];

/** Takes README's pictures again, into the folder SCREENSHOTS or one that is removed: SCREENSHOTS=docs/pictures replaces them. */
export function readmePictures(openTab: OpenTab): void {
  it("can be photographed for README, which shows it in two pictures of 60 kB together", async () => {
    const app = await openApp();
    const folder = screenshots ?? makeFolder();
    const pictures = await openPictures();
    await addDone(
      app,
      { title: "The night train, from one coast to the other", thumbnail: pictures("dusk") },
      { size: 611_000_000, width: 1280, height: 720, duration: 4_325 },
    );
    await addRunning(
      app,
      { title: "Harbour camera", thumbnail: pictures("night"), info: { uploader: "Port office" } },
      { is_live: true, downloaded_bytes: 210_000_000, total_bytes: null, eta: null },
    );
    await addRunning(
      app,
      { title: "How the bridge by the sea was built", thumbnail: pictures("wood") },
      { downloaded_bytes: 97_300_000, total_bytes: 153_000_000, speed: 5_530_000, eta: 10 },
    );
    const address = "https://video.example.com/watch/mountains";
    app.pages.set(address, mountains(address, pictures("snow")));
    const viewport = { width: 840, height: 940 };
    const tab = await openTab(app.url, { viewport, timezoneId: "UTC", locale: "en-GB" });
    await expect.poll(() => loadedImages(tab.page)).toBe(3);
    await take(tab.page, join(folder, "readme-downloads.webp"));
    await tab.paste(address);
    await tab.page.getByRole("button", { name: "Download 360p" }).waitFor();
    await expect.poll(() => loadedImages(tab.page)).toBe(4);
    await take(tab.page, join(folder, "readme-found.webp"));

    const root = new URL("../../../", import.meta.url);
    const readme = readFileSync(new URL("README.md", root), "utf8");
    const sizes = names.map((name) => {
      expect(readme).toContain(`src="docs/pictures/${name}"`);
      return statSync(new URL(`docs/pictures/${name}`, root)).size;
    });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(30_000);
  });
}

async function openPictures(): Promise<(name: string) => string> {
  const painted = {
    dusk: landscape([62, 42, 110], [240, 120, 90], [30, 24, 58]),
    night: landscape([10, 20, 48], [40, 70, 120], [6, 12, 28]),
    wood: landscape([120, 190, 200], [235, 240, 200], [38, 92, 60]),
    snow: landscape([70, 130, 200], [200, 225, 245], [150, 160, 185]),
  };
  const images = Object.entries(painted).map(([name, bytes]) => [name, resource("image/png", bytes)] as const);
  const site = await startTestSite(new Map(images));
  return (name) => site.url(name);
}

function mountains(url: string, thumbnail: string) {
  const heights = [2160, 1080, 720, 480, 360];
  return filmPage(url, {
    title: "Over the mountains in four seasons",
    duration: 1_834,
    thumbnails: [{ url: thumbnail, width: 320, height: 180 }],
    formats: heights.map((height) =>
      format(`hls-${height}`, {
        height,
        width: Math.round((height * 16) / 9),
        vcodec: height > 1080 ? "av01.0.12M.08" : "avc1.64001f",
        tbr: height * 3,
        filesize_approx: Math.round((height * 3_000 * 1_834) / 8),
        language: "en",
      }),
    ),
  });
}

/** As WebP, which Playwright cannot. */
async function take(page: Page, path: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 68 });
  await writeFile(path, Buffer.from(data, "base64"));
}
