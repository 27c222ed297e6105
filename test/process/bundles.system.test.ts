import { execFile, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../folder.ts";
import { childrenOf } from "./child-processes.ts";
import { commandWith, startService } from "./service.ts";

const top = join(import.meta.dirname, "../..");

/** A copy of the service with the same packages, not yet bundled. */
function copyService() {
  const root = makeFolder();
  for (const name of ["src", "package.json"]) cpSync(join(top, name), join(root, name), { recursive: true });
  const packages = join(root, "node_modules");
  mkdirSync(packages);
  for (const name of readdirSync(join(top, "node_modules"))) {
    if (name !== ".cache") symlinkSync(join(top, "node_modules", name), join(packages, name));
  }
  const bundles = join(packages, ".cache/unreel-programs");
  return {
    root,
    src: join(root, "src"),
    bundles,
    listBundles: () => (existsSync(bundles) ? readdirSync(bundles) : []),
  };
}

/** The file of the program that a worker process loads, from the stack trace of the error without a service. */
function loadedByWorker(src: string): Promise<string | undefined> {
  const program = join(src, "engines/native/worker/start-worker.js");
  return new Promise((resolve) => {
    execFile(process.execPath, [program], (_error, _stdout, stderr) => {
      resolve(/worker\.(?:ts|mjs)(?=:\d)/.exec(stderr)?.[0]);
    });
  });
}

it("runs its programs from one file each once a start has written them, and from sources that were changed since", async () => {
  const { root, src, bundles, listBundles } = copyService();
  const command = [...commandWith().slice(0, -1), join(src, "start.js")];
  expect(await loadedByWorker(src)).toBe("worker.ts");

  const first = await startService({ DATA_DIR: join(root, "data") }, command);
  await expect.poll(listBundles).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
  await first.end("SIGTERM");
  expect(await loadedByWorker(src)).toBe("worker.mjs");
  const [folder = ""] = listBundles();
  // V8 needs two bytes for each character otherwise.
  expect(readFileSync(join(bundles, folder, "main.mjs"), "utf8")).toMatch(/^[\0-\x7f]+$/);
  const second = await startService({ DATA_DIR: join(root, "data") }, command);
  // A package's own file.
  expect((await fetch(`${second.url}/docs/static/swagger-ui.css`)).status).toBe(200);
  await second.end("SIGTERM");

  const [old = ""] = listBundles();
  utimesSync(join(bundles, old), 1, 1);
  utimesSync(join(src, "engines/engine.ts"), 1, 1);
  expect(await loadedByWorker(src)).toBe("worker.ts");
  // As the next start does.
  spawnSync(process.execPath, [join(src, "system/bundle-programs.ts")]);
  expect(listBundles()).toEqual([expect.not.stringMatching(`unfinished|${old}`)]);
  expect(await loadedByWorker(src)).toBe("worker.mjs");
});

it.skipIf(!existsSync("/proc/self/oom_score_adj"))(
  "if memory is short, the system ends what bundles its programs, and what reads pages, before the service, whatever that has",
  async () => {
    const { root, src } = copyService();
    const command = [...commandWith().slice(0, -1), join(src, "start.js")];
    const settings = { DATA_DIR: join(root, "data"), ALLOW_NETWORKS: "127.0.0.0/8" };
    const { url, process: service, end } = await startService(settings, command);
    onTestFinished(async () => void (await end("SIGKILL")));
    const scoresOf = (program: string) => () =>
      childrenOf(service.pid ?? 0, program).map((pid) => readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim());
    const often = { interval: 20 };
    await expect.poll(scoresOf("bundle-programs.ts"), often).toContain("1000");
    await fetch(`${url}/info?url=${url}/docs/`);
    await expect.poll(scoresOf("start-reader.js"), often).toContain("1000");
  },
);

it.skipIf(spawnSync("unshare", ["-m", "true"]).status !== 0)("says nothing if its folder is read-only", () => {
  const { root, src, listBundles } = copyService();
  const program = [process.execPath, join(src, "system/bundle-programs.ts")];
  const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';

  const { status, stderr } = spawnSync("unshare", ["-m", "sh", "-c", readOnly, root, ...program], { encoding: "utf8" });

  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(listBundles()).toEqual([]);
});
