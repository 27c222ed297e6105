import { createHash, generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import { parseOrigins } from "../../src/config/lists.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../folder.ts";
import { isWholeChromiumMissing, launchWithExtension } from "../web/chromium.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { pageUrl } from "./requests.ts";
import { listenApp, openApp } from "./open-app.ts";

/** Writes an unpacked extension that may call no host; returns its folder and its id. */
function writeExtension() {
  const folder = makeFolder();
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = publicKey.export({ type: "spki", format: "der" });
  const manifest = { manifest_version: 3, name: "Send to", version: "1.0", key: key.toString("base64") };
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "popup.html"), "<!doctype html><title>Send to</title>");
  // Chrome names an extension by the first 32 hexadecimal digits of its key's SHA-256, in letters from a on.
  const digits = createHash("sha256").update(key).digest("hex").slice(0, 32);
  const id = digits.replaceAll(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));
  return { folder, id };
}

const createTask = (port: number, headers: Record<string, string>) => `
  fetch("http://127.0.0.1:${port}/tasks/", {
    method: "POST",
    headers: ${JSON.stringify({ "content-type": "application/json", ...headers })},
    body: JSON.stringify({ url: "${pageUrl}?new" }),
  }).then(
    async (response) => {
      const { state, code } = await response.json();
      return [response.status, response.headers.get("location"), state ?? code];
    },
    (error) => error.name,
  )`;

const getText = (port: number, path: string, headers: Record<string, string>) => `
  fetch("http://127.0.0.1:${port}/${path}", { headers: ${JSON.stringify(headers)} }).then(
    async (response) => [response.status, response.headers.get("content-location"), await response.text()],
    (error) => error.name,
  )`;

it.skipIf(isWholeChromiumMissing)(
  "an extension in ALLOWED_ORIGINS creates a task and gets files with a key; one that is not listed reads nothing",
  async () => {
    const store = createMemoryStore();
    const { headers } = await addKey(store, "anna");
    const files = openDiskFiles({ folder: makeFolder() });
    const film = await addFinishedTask({ store, files }, Buffer.from("content"), {}, "anna");
    const paths = [`tasks/${film.id}/file`, `download?url=${encodeURIComponent(pageUrl)}`];
    const { folder, id } = writeExtension();
    const context = await launchWithExtension(folder);
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`chrome-extension://${id}/popup.html`);
    const results: unknown[] = [];
    for (const allowedOrigins of [`chrome-extension://${id}`, `chrome-extension://${"a".repeat(32)}`]) {
      const app = await openApp({ store, files, allowedOrigins: parseOrigins(allowedOrigins) });
      const port = await listenApp(app);
      results.push(await page.evaluate(createTask(port, headers)), await page.evaluate(createTask(port, {})));
      for (const path of paths) results.push(await page.evaluate(getText(port, path, headers)));
    }
    expect(results).toEqual([
      [201, expect.stringMatching(/^\.\.\/tasks\//), "queued"],
      [401, null, "unauthorized"],
      [200, null, "content"],
      [200, `tasks/${film.id}`, "content"],
      ...Array.from({ length: 4 }, () => "TypeError"),
    ]);
    expect((await store.count()).byState.queued).toBe(1);
  },
);
