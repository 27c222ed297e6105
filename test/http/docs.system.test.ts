import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { useBrowser } from "../web/browser.ts";
import { isChromiumMissing } from "../web/chromium.ts";
import { startSubPath } from "./sub-path.ts";
import { openApp } from "./open-app.ts";

describe.skipIf(isChromiumMissing)("/docs in a browser", () => {
  const openTab = useBrowser();

  it.each([
    ["/", ["docs", "docs/", "docs?from=here", "docs/?from=here", "docs/static/index.html"]],
    ["/a/b/", ["docs"]],
  ])("loads all that it needs, and sends requests, below %s of a proxy", async (path, starts) => {
    const app = await openApp();
    await app.listen({ host: "127.0.0.1", port: 0 });
    const base = await startSubPath((app.server.address() as AddressInfo).port, path);
    const { page, expectShifts } = await openTab(base.href, { path: "docs" });
    expectShifts("<");
    const responses: [path: string, status: number][] = [];
    page.on("response", (response) => {
      responses.push([new URL(response.url()).pathname, response.status()]);
    });
    expect(page.url()).toBe(new URL("docs/", base).href);
    // Where a browser gets to from each of them.
    for (const start of starts) expect((await fetch(new URL(start, base))).url).toBe(page.url());
    await page.reload();
    await page.getByText("List tasks, newest first").click();
    await page.getByRole("button", { name: "Try it out" }).click();
    await page.getByRole("button", { name: "Execute" }).click();
    await page.locator(".live-responses-table .response").getByText('"next": null').waitFor();
    expect(responses.filter(([, status]) => status >= 400)).toEqual([]);
    expect(responses).toContainEqual([`${path}tasks/`, 200]);
  });
});
