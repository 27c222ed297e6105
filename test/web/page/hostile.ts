import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { filmPage, format } from "./found-pages.ts";
import { inspectLayout } from "./inspect.ts";
import { openApp } from "./open-app.ts";
import { addDone, addEnded } from "./stored-tasks.ts";

const address = "https://video.example.com/watch/42";

/** Texts that a site may send, by what is special about them. */
const hostileTexts = {
  markup: `<img src=x onerror="document.title='broken in'"><script>document.title='broken in'</script>&amp;`,
  "a right-to-left override": "\u202Egpj.exe moor gniviL\u2066 \u05D0\u05D1\u05D2 \u200F",
  "10,000 characters without a space": "W".repeat(10_000),
  "NUL and control characters": "before\u0000after\u0007\u001B[31m\uFEFF",
  "emoji and combining characters": `👩‍👩‍👧‍👦🏴‍☠️ Z${"\u0300".repeat(60)} 🎬`,
};

export function hostileTextsAreText(openTab: OpenTab): void {
  it.each(Object.entries(hostileTexts))(
    "%s in a title, an uploader, a file's name, an error and formats is text, and the layout holds",
    async (name, text) => {
      const app = await openApp();
      const info = { uploader: text, site_name: text };
      await addDone(app, { title: text, info }, { name: `${text.slice(0, 200)}.mp4` });
      const error = { code: text, message: text, retryable: false };
      await addEnded(app, { title: `2 ${text}`, info }, { state: "failed", error });
      app.pages.set(
        address,
        filmPage(address, {
          title: text,
          uploader: text,
          site_name: text,
          webpage_url: `javascript:${text}`,
          formats: [format(text.slice(0, 250), { vcodec: text, acodec: text, language: text, ext: text })],
          subtitles: { [text]: [{ url: "javascript:alert(1)", ext: text, name: text }] },
          entries: [{ url: address, title: text, duration: 1 }],
        }),
      );
      const tab = await openTab(app.url);
      const { page } = tab;
      const rows = page.getByRole("article");
      expect(await rows.last().getByRole("link").first().textContent()).toBe(text);
      await rows.first().getByText("Details").click();
      expect(await rows.first().locator("details").textContent()).toContain(text);
      await inspectLayout(page, `tasks with ${name}`);
      await rows.last().getByText("More", { exact: true }).click();
      await rows.last().getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("dialog").getByRole("button", { name: "No" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await tab.paste(address);
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Subtitles (1)").click();
      expect(await dialog.getByRole("heading").first().textContent()).toBe(text);
      await inspectLayout(page, `found with ${name}`);
      expect(await page.title()).toBe("Unreel");
      expect(await page.locator("script:not([src]), img[src=x], a[href^='javascript:']").count()).toBe(1);
    },
  );
}
