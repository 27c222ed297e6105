import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { ResultFile } from "../../src/model/task.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { pageUrl } from "../http/requests.ts";
import { pageInfo } from "../page-info.ts";
import { startService } from "./service.ts";

const run = promisify(execFile);
const MiB = 1024 ** 2;
/** Beyond what 32 bits can say, as is the place at which the first download breaks. */
const filmBytes = 4_150 * MiB;
const wordsText = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n";
/** Of the archive, MiB: what the first download gets before it breaks. */
const brokenAtMiB = 4_120;

const has = async (program: string) =>
  run(program, ["--version"]).then(
    () => true,
    (error) => error.code !== "ENOENT",
  );
const hasAll = (await Promise.all(["curl", "dd", "unzip", "bsdtar", "python3"].map(has))).every(Boolean);

/** Stores a task with a film of over 4 GiB, of which almost all is a hole, and subtitles. */
async function addLargeTask(dataDir: string): Promise<string> {
  const store = openSqliteStore({ path: join(dataDir, "tasks.db") });
  const files = openDiskFiles({ folder: dataDir });
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  const workFolder = await files.openWorkFolder(id);
  const [filmPath, wordsPath] = [join(workFolder, "film"), join(workFolder, "words")];
  {
    await using film = await open(filmPath, "w");
    for (const at of [0, filmBytes / 2, brokenAtMiB * MiB, filmBytes - 100]) await film.write("frames", at);
    await film.truncate(filmBytes);
  }
  await writeFile(wordsPath, wordsText);
  await files.saveResult(id, filmPath, [wordsPath]);
  const medium = { name: "film.mp4", mime_type: "video/mp4", size: filmBytes, sha256: "00", url: "/" };
  const words = {
    name: "film.en.vtt",
    mime_type: "text/vtt",
    size: wordsText.length,
    sha256: "01",
    url: "/",
    language: "en",
  };
  const listed: ResultFile[] = [
    { kind: "media", ...medium },
    { kind: "subtitles", ...words },
  ];
  await store.update(id, { info: pageInfo({ title: "A film", uploader: "Ann" }) });
  const file = { ...medium, duration: 1, width: 1, height: 1, warnings: [] };
  await store.update(id, { state: "succeeded", file, files: listed });
  await store.close();
  return id;
}

const residentMiB = (pid: number | undefined, field: "VmRSS" | "VmHWM") =>
  Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

it.runIf(hasAll && process.platform === "linux")(
  "an archive of over 4 GiB that broke off is resumed by curl, and whole for unzip, bsdtar and Python, in flat memory",
  async () => {
    // Holes are read fastest there.
    const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "unreel-archive-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const id = await addLargeTask(folder);
    const env = { DATA_DIR: folder, MIN_FREE_BYTES: "0" };
    const service = await startService({ ...env, LIBRARY_TEMPLATE: "Films/{uploader}/{title}" });
    onTestFinished(async () => void (await service.end("SIGTERM")));
    const { pid } = service.process;
    const [url, path] = [`${service.url}/tasks/${id}/files.zip`, join(folder, "films.zip")];
    const { headers } = await fetch(url, { method: "HEAD" });
    const before = residentMiB(pid, "VmRSS");

    // Writes no zeros, then ends, so that curl fails.
    const dd = spawn("dd", [`of=${path}`, "bs=1M", `count=${brokenAtMiB}`, "iflag=fullblock", "conv=sparse"], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    const curl = spawn("curl", ["-sN", url], { stdio: ["ignore", dd.stdin, "ignore"] });
    await Promise.all([once(dd, "exit"), once(curl, "exit")]);
    dd.stdin.destroy();
    expect(curl.exitCode).not.toBe(0);
    expect(statSync(path).size).toBe(brokenAtMiB * MiB);
    await run("curl", ["-sS", "--fail", "-C", "-", "-o", path, url]);
    expect(statSync(path).size).toBe(Number(headers.get("content-length")));
    expect(residentMiB(pid, "VmHWM") - before).toBeLessThan(100);

    const environment = { env: { ...process.env, LC_ALL: "C.UTF-8" } };
    // The film itself is left to Python, whose checksums take a tenth of the time.
    expect((await run("unzip", ["-tq", path, "*.vtt"])).stdout).toMatch(/^No errors detected/);
    const names = ["Films/Ann/A film.mp4", "Films/Ann/A film.en.vtt"];
    expect((await run("bsdtar", ["-tf", path], environment)).stdout.trim().split("\n")).toEqual(names);
    expect((await run("bsdtar", ["-xOf", path, names[1]!], environment)).stdout).toBe(wordsText);
    const script =
      "import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]);" +
      "print(json.dumps([z.testzip(), [[i.filename, i.file_size] for i in z.infolist()]]))";
    const { stdout } = await run("python3", ["-c", script, path]);
    expect(JSON.parse(stdout)).toEqual([
      null,
      [
        [names[0], filmBytes],
        [names[1], wordsText.length],
      ],
    ]);
  },
);
