import { describe } from "vitest";
import { useBrowser } from "./browser.ts";
import { isChromiumMissing } from "./chromium.ts";
import { sayingWhatFailed } from "./page/failures.ts";
import { findingPages } from "./page/finding.ts";
import { keyboardAlone } from "./page/keyboard.ts";
import { theListIsLive } from "./page/live-list.ts";
import { manyTasks } from "./page/many-tasks.ts";
import { removingFiles } from "./page/file-removal.ts";
import { useSharedApp } from "./page/open-app.ts";
import { placesOfThePage } from "./page/places.ts";
import { playing } from "./page/playing.ts";
import { signingIn } from "./page/sign-in.ts";
import { wholeWay } from "./page/whole-way.ts";

describe.skipIf(isChromiumMissing)("the page in a browser", () => {
  const openTab = useBrowser();
  useSharedApp();
  wholeWay(openTab);
  keyboardAlone(openTab);
  findingPages(openTab);
  sayingWhatFailed(openTab);
  playing(openTab);
  theListIsLive(openTab);
  manyTasks(openTab);
  removingFiles(openTab);
  placesOfThePage(openTab);
  signingIn(openTab);
});
