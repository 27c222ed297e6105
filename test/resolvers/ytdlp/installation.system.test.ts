import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { openYtDlp } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { createTestLog } from "../../log.ts";
import { openHarness } from "./harness.ts";
import { createVariant, installed, missing, pythonPath, setVersion } from "./installed.ts";
import { makeSharedFolder } from "../../folder.ts";

const folder = makeSharedFolder();

/** Opens with settings of which no process comes. */
function open(path: string, searchPath: string, cookiesFile = "") {
  const { log, logger } = createTestLog();
  const proxy = {
    port: 1,
    openRun(): never {
      throw new Error("not expected");
    },
  };
  const options = {
    path,
    searchPath,
    cookiesFile,
    concurrency: 1,
    timeoutMs: 1_000,
    proxy,
    logger,
  };
  return { log, opened: openYtDlp(options) };
}

/** Writes a program called yt-dlp into a folder of its own. */
function write(name: string, content: string | Buffer): string {
  const path = join(folder, name, "bin/yt-dlp");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode: 0o755 });
  return path;
}

describe("without yt-dlp", () => {
  it("is off if told so, whatever is on PATH", async () => {
    const { log, opened } = open("off", process.env["PATH"] ?? "");
    expect(await opened).toBeUndefined();
    expect(log).toEqual([]);
  });

  it("says how to get it if PATH has none", async () => {
    const { log, opened } = open("", folder);
    expect(await opened).toBeUndefined();
    expect(log).toMatchObject([{ msg: expect.stringContaining("pipx install") as string }]);
  });

  it.each([
    ["a program of its own", "elf", Buffer.from("\x7fELF\x02\x01\x01", "latin1"), "a program of its own"],
    ["no Python's script", "shell", "#!/bin/bash\nexec yt-dlp\n", "names no Python"],
    ["a script of a Python that is missing", "gone", "#!/nonexistent/python3\n", "ENOENT"],
    [
      "garbage instead of Python",
      "garbage",
      `#!${fakePython("echo garbage >&3; exec /bin/sleep 60")}\n`,
      "something other than frames",
    ],
    ["a Python that ends", "ends", `#!${fakePython("echo broken >&2; exit 3")}\n`, "exit code 3: broken"],
  ])("refuses %s in one line", async (_, name, content, reason) => {
    const path = write(name, content);
    const { opened } = open(path, "");
    await expect(opened).rejects.toThrow(reason);
    await expect(opened).rejects.toThrow(/^YTDLP .*got "/);
    const onPath = open("", dirname(path));
    expect(await onPath.opened).toBeUndefined();
    expect(onPath.log).toMatchObject([{ msg: expect.stringContaining(reason) as string }]);
  });

  it("refuses a path without a file", async () => {
    await expect(open(join(folder, "none"), "").opened).rejects.toThrow(/^YTDLP must be .*ENOENT/);
  });

  it.each(["/nowhere/cookies.txt", "/"])("refuses %s as a file of cookies, also if it is off", async (path) => {
    const refusal = new Error(`YTDLP_COOKIES must be a file that can be read, got "${path}"`);
    await expect(open("", "", path).opened).rejects.toThrow(refusal);
    await expect(open("off", "", path).opened).rejects.toThrow(refusal);
  });

  it.each([
    ["JSON", '[{ "domain": ".site.test", "name": "a", "value": "1" }]\n'],
    ["lines without the first one", ".site.test\tTRUE\t/\tFALSE\t0\ta\t1\n"],
  ])("refuses cookies that are %s, also if it is off", async (_, text) => {
    const path = join(folder, "cookies");
    writeFileSync(path, text);
    const rule = 'in Netscape format, whose first line is "# Netscape HTTP Cookie File"';
    const refusal = new Error(`YTDLP_COOKIES must be a file of cookies ${rule}, got "${path}"`);
    await expect(open("", "", path).opened).rejects.toThrow(refusal);
    await expect(open("off", "", path).opened).rejects.toThrow(refusal);
  });

  it.each(["", "# HTTP Cookie File\n", "# Netscape HTTP Cookie File\r\n", "\uFEFF# Netscape HTTP Cookie File\n"])(
    "takes cookies that are %j",
    async (text) => {
      const path = join(folder, "cookies");
      writeFileSync(path, text);
      expect(await open("off", "", path).opened).toBeUndefined();
    },
  );

  it("refuses a Python without yt-dlp", async ({ skip }) => {
    if (installed === undefined) skip("no yt-dlp (YTDLP)");
    const path = write("empty", `#!${pythonPath()}\n`);
    await expect(open(path, "").opened).rejects.toThrow(/has no package yt_dlp/);
  });
});

describe.skipIf(installed === undefined)(`an installed yt-dlp${missing}`, () => {
  it.each(["2023.03.04", "2025.10.22"])("is refused if it is unsafe: %s", async (version) => {
    using variant = createVariant({ version });
    await expect(open(variant.path, "").opened).rejects.toThrow(
      `YTDLP must be yt-dlp 2025.11.12 or newer, as older ones are unsafe; it is ${version}`,
    );
  });

  it("is called old 90 days after its release, once", async () => {
    using variant = createVariant({ version: "2025.11.12" });
    await using harness = await openHarness({ path: variant.path });
    const warnings = harness.log.filter((line) => "days" in line);
    expect(warnings).toMatchObject([{ version: "2025.11.12" }]);
  });

  it("is found on PATH, by the Python that PATH has", async () => {
    using variant = createVariant({ interpreter: "/usr/bin/env python3" });
    const searchPath = `${dirname(variant.path)}:${dirname(pythonPath())}`;
    await using harness = await openHarness({ path: "", searchPath });
    expect(harness.ytDlp.version).toMatch(/^\d{4}\.\d\d\.\d\d/);
  });

  it.each(["/bin/sh\n'''exec' \"PYTHON\" \"$0\" \"$@\"\n' '''", "/usr/bin/env -S PYTHON -s", " PYTHON"])(
    "may name its Python as %j",
    async (form) => {
      using variant = createVariant({ interpreter: form.replace("PYTHON", pythonPath()) });
      setVersion(variant.packageFolder, "2026.10.03");
      await using harness = await openHarness({ path: variant.path });
      expect(harness.ytDlp.version).toBe("2026.10.03");
    },
  );
});

/** Returns the path of a program called python3 that runs a line of shell. */
function fakePython(line: string): string {
  const path = join(mkdtempSync(join(folder, "python-")), "python3");
  writeFileSync(path, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  return path;
}
