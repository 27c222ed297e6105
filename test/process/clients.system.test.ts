import { execFile, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import type { Site } from "../media/site.ts";
import { film, openSite } from "./film-site.ts";
import { addKey } from "./keys.ts";
import { openTestCluster } from "./test-cluster.ts";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The programs of docs/clients.md: what prepares them, their file, and the command that runs it. */
const clients = read("docs/clients.md")
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const name = section.split("\n")[0]!;
    const file = /^`(download\.\w+)`/m.exec(section)![1]!;
    const blocks = [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, block]) => block!);
    const [command, program, ...before] = blocks.toReversed();
    return { name, file, program: program!, command: command!, setup: before.join("") };
  });

it("docs/clients.md has a client in curl, Python and TypeScript each", () => {
  expect(clients.map(({ name }) => name)).toEqual(["curl", "Python", "TypeScript"]);
});

/** What the clients are told, and the site of their pages. */
let env: { SERVICE: string; KEY: string };
let site: Site;
const ends: (() => PromiseLike<void> | void)[] = [];

beforeAll(async () => {
  site = await openSite({}, (end) => ends.push(end));
  const cluster = openTestCluster("sqlite:", {}, (end) => ends.push(end));
  const KEY = await addKey({ DATA_DIR: cluster.dataDir }, "anna");
  const { url: SERVICE } = await cluster.start("all");
  env = { SERVICE, KEY };
});
afterAll(async () => {
  for (const end of ends) await end();
});

/** Those whose programs are installed. */
const present = clients.filter(({ setup, program, command }) => {
  const tools = ["curl", "python3"].filter((tool) => new RegExp(`(^|\\s|\\()${tool} `).test(setup + program + command));
  return tools.every((tool) => spawnSync(tool, ["--version"]).status === 0);
});

describe.each(present)("the client in $name, as it is documented", ({ file, program, command, setup }) => {
  const folder = makeSharedFolder();
  const run = (lines: string, given: Record<string, string> = {}) =>
    promisify(execFile)("sh", ["-e", "-c", lines], {
      cwd: folder,
      env: { ...process.env, PATH: [dirname(process.execPath), process.env["PATH"]].join(delimiter), ...given },
    });

  beforeAll(() => {
    writeFileSync(join(folder, "package.json"), "{}");
    writeFileSync(join(folder, file), program);
  });

  it("downloads what is on the page, under its name", async () => {
    await run(setup, env);
    await run(command, { ...env, page: site.url("film.mp4") });
    expect(readFileSync(join(folder, "film.mp4")).equals(film)).toBe(true);
  });

  it("says why there is no file: what the service refuses, and what the site has not", async () => {
    const says = (words: string) => expect.objectContaining({ stderr: expect.stringContaining(words) });
    await expect(run(command, { ...env, page: "no-url" })).rejects.toEqual(says("must begin with https://"));
    const missing = run(command, { ...env, page: site.url("other.mp4") });
    await expect(missing).rejects.toEqual(says("failed with status 404"));
    expect(existsSync(join(folder, "other.mp4"))).toBe(false);
  });

  if (!file.endsWith(".ts")) return;

  it("has no error of types", async () => {
    const compilerOptions = { module: "nodenext", target: "esnext", strict: true, noEmit: true, types: ["node"] };
    const options = {
      ...compilerOptions,
      allowImportingTsExtensions: true,
      typeRoots: [join(root, "node_modules/@types")],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options }));
    await run(`"${join(root, "node_modules/.bin/tsc")}"`);
  });
});
