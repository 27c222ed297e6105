import { expect, it, onTestFinished } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { createHttpClient } from "../../../src/net/http/http-client.ts";
import { extractionError } from "../../../src/resolvers/ytdlp/failures.ts";
import { startUpstream } from "../../net/upstream.ts";
import type { OpenTab } from "../browser.ts";
import { openApp } from "./open-app.ts";
import { addEnded } from "./stored-tasks.ts";

const address = "https://video.example.com/watch/42";

const statusSentences = {
  403: "The site refused the request (status 403). Trying again will not help.",
  404: "The site says that there is no such page or file (status 404). Trying again will not help.",
  410: "The site says that this page or file is gone (status 410). Trying again will not help.",
  429: "The site says that it has had too many requests (status 429). Trying again may help.",
  418: "The site responded with an error (status 418). Trying again will not help.",
  503: "The site responded with an error (status 503). Trying again may help.",
};

export function sayingWhatFailed(openTab: OpenTab): void {
  it("says what the status of a site's response means, whoever has read the page", async () => {
    const site = await startUpstream(({ url = "" }, response) => {
      response.writeHead(Number(url.slice(1))).end();
    });
    const client = createHttpClient({ allowNetworks: ["127.0.0.0/8"] });
    onTestFinished(() => client.close());
    const app = await openApp();
    const tab = await openTab(app.url);
    tab.expectFailures(/status of 502 .*info\?url=/);
    for (const [status, sentence] of Object.entries(statusSentences)) {
      const [page, other] = [`${address}/${status}`, `${address}/yt-dlp/${status}`];
      app.pages.set(page, async ({ signal }) => {
        await client.get(site.url(`/${status}`), { signal, maxBytes: 1 });
        throw new Error(`the site has not responded with ${status}`);
      });
      const failure = {
        errors: ["HTTPError"],
        status: Number(status),
        expected: true,
        message: "",
      };
      app.pages.set(other, () => Promise.reject(extractionError(failure, "yt-dlp")));
      for (const each of [page, other]) {
        await tab.paste(each);
        await tab.page.locator("p.failure", { hasText: sentence }).waitFor();
        await tab.page.getByRole("button", { name: "Close" }).click();
      }
    }
  });

  it("says what it can of a status that it does not find", async () => {
    const app = await openApp();
    const error = { code: "upstream_status", message: "something else", retryable: false };
    await addEnded(app, { title: "A film" }, { state: "failed", error });
    const { page } = await openTab(app.url);
    const state = page.getByRole("article").locator(".task-state");
    await expect.poll(() => state.textContent()).toBe("The site responded with an error. Trying again will not help.");
  });

  it("says that a live stream has not begun, or is of a kind that is not recorded", async () => {
    const app = await openApp();
    app.pages.set(address, () =>
      Promise.reject(new ServiceError("live_stream", "live DASH (type dynamic) is not recorded")),
    );
    const tab = await openTab(app.url);
    tab.expectFailures(/status of 422 .*info\?url=/);
    await tab.paste(address);
    const sentences =
      "This live stream has not begun, or it cannot be recorded. Trying again may help once it has begun.";
    await tab.page.locator("p.failure", { hasText: sentences }).waitFor();
  });
}
