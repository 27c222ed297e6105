import { describe, expect, it } from "vitest";
import { useBrowser } from "./browser.ts";
import { isChromiumMissing } from "./chromium.ts";
import { hostileTextsAreText } from "./page/hostile.ts";
import { inspect, layoutChanges } from "./page/inspect.ts";
import { openApp, useSharedApp } from "./page/open-app.ts";
import { readmePictures } from "./page/readme-pictures.ts";
import { pageStates } from "./page/states.ts";

describe.skipIf(isChromiumMissing)("the page in light and dark, from 320 px to 1920 px", () => {
  const openTab = useBrowser();
  useSharedApp();

  it.each(pageStates)(
    "$name: meets WCAG 2.2 AA, fits into its width and moves nothing",
    async ({ name, prepare, reach, closesApp = false }) => {
      const app = await openApp(closesApp ? {} : undefined);
      await prepare?.(app);
      const tab = await openTab(app.url);
      await reach(tab, app);
      await inspect(tab.page, name);
    },
  );

  it("has two layouts, and all rules are looked at in each of them", () => {
    expect(layoutChanges()).toEqual(["@media (max-width: 40rem)"]);
  });

  hostileTextsAreText(openTab);
  readmePictures(openTab);
});
