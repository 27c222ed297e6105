import { describe } from "vitest";
import { isChromiumMissing, useBrowser } from "./browser.ts";
import { wholeWay } from "./page/whole-way.ts";

describe.skipIf(isChromiumMissing)("the page in a browser", () => {
  wholeWay(useBrowser());
});
