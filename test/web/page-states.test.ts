import { afterAll, beforeAll, describe, it } from "vitest";
import { useBrowser } from "./browser.ts";
import { isChromiumMissing } from "./chromium.ts";
import { hostileTextsAreText } from "./page/hostile.ts";
import { inspect, openScreenshots } from "./page/inspect.ts";
import { openApp } from "./page/open-app.ts";
import { readmePictures } from "./page/readme-pictures.ts";
import { pageStates } from "./page/states.ts";

describe.skipIf(isChromiumMissing)("the page in light and dark, from 320 px to 1920 px", () => {
  const openTab = useBrowser();
  let folder: string;
  beforeAll(async () => {
    folder = await openScreenshots();
  });
  afterAll(() => console.log(`screenshots of the page are in ${folder}`));

  it.each(pageStates)(
    "$name: meets WCAG 2.2 AA, fits into its width and moves nothing",
    async ({ name, prepare, reach }) => {
      const app = await openApp();
      await prepare?.(app);
      const tab = await openTab(app.url);
      await reach(tab, app);
      await inspect(tab.page, folder, name);
    },
  );

  hostileTextsAreText(openTab, () => folder);
  readmePictures(openTab, () => folder);
});
