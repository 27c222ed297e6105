import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeFolder } from "./folder.ts";
import { findFreePort } from "./process/free-port.ts";

const top = join(import.meta.dirname, "..");

/** Returns the first block of this language in a chapter of docs/operations.md. */
function blockOf(chapter: string, language: string): string {
  const text = readFileSync(join(top, "docs/operations.md"), "utf8");
  const [, block = ""] = new RegExp(`^## ${chapter}$[^]*?^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "m").exec(text) ?? [];
  return block;
}

it("the lines about webhooks in docs/operations.md work as they are printed", async () => {
  const folder = makeFolder();
  for (const name of ["package.json", "node_modules", "src"]) symlinkSync(join(top, name), join(folder, name));
  const [port, receiverPort] = [await findFreePort(), await findFreePort()];
  const printed = (language: string) => blockOf("Webhooks", language).replaceAll("8080", receiverPort);
  writeFileSync(join(folder, "receiver.mjs"), printed("js"));
  const { PATH } = process.env;
  const env = { PATH, HOME: folder, PORT: port, DATA_DIR: join(folder, "data"), YTDLP: "off", CONCURRENCY: "0" };
  const shell = spawn("bash", ["-ec", printed("sh")], {
    cwd: folder,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    process.kill(-shell.pid!, "SIGTERM");
    await once(shell, "close");
  });
  let output = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
  const url = `http://127.0.0.1:${port}/tasks/`;
  await expect
    .poll(() =>
      fetch(url).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200);
  const headers = { "content-type": "application/json" };
  const created = await fetch(url, { method: "POST", headers, body: '{"url": "https://video.example.com/"}' });
  const { id } = (await created.json()) as { id: string };
  await fetch(`${url}${id}/cancel`, { method: "POST" });
  await expect.poll(() => output).toContain(`task.canceled ${id}\n`);
});
