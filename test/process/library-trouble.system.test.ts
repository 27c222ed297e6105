import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Task } from "../../src/model/task.ts";
import { resource } from "../media/resources.ts";
import { openDatabase } from "../postgres/database.ts";
import { makeFolder } from "../folder.ts";
import type { TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { fillDisk, mountSmallDisk } from "./small-disk.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

/** Resolves with the task, which has ended, once `holds` is true of it. */
async function until(client: TaskClient, id: string, holds: (task: Task) => boolean): Promise<Task> {
  await client.ended(id);
  await expect.poll(async () => holds(await client.get(id))).toBe(true);
  return client.get(id);
}

const placedBy = async (client: TaskClient, id: string) => until(client, id, ({ library }) => library !== undefined);

const page = (title: string) => resource("text/html", `<title>${title}</title><video src="film.mp4"></video>`);

/** A folder that stops being a library, and becomes one again. */
interface Trouble {
  library: string;
  begin(): void;
  end(): void;
}

const user = 65_534;
const isRoot = process.getuid?.() === 0;
/** Who may do everything is no example. */
const asUser = isRoot ? ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups"] : [];

function becomesFull(): Trouble | undefined {
  const library = mountSmallDisk("1m");
  if (library === undefined) return undefined;
  if (isRoot) chownSync(library, user, user);
  const ballast = join(library, "ballast");
  return { library, begin: () => fillDisk(ballast), end: () => rmSync(ballast) };
}

function newLibrary(): string {
  const library = join(makeFolder(), "library");
  mkdirSync(library);
  if (isRoot) {
    chmodSync(join(library, ".."), 0o755);
    chownSync(library, user, user);
  }
  return library;
}

/** As a disk that is not mounted: an empty folder is where it was. */
function goesAway(): Trouble {
  const library = newLibrary();
  return {
    library,
    begin() {
      renameSync(library, `${library}-away`);
      mkdirSync(library);
    },
    end() {
      rmSync(library, { recursive: true });
      renameSync(`${library}-away`, library);
    },
  };
}

function refusesWriting(): Trouble {
  const library = newLibrary();
  return { library, begin: () => chmodSync(library, 0o555), end: () => chmodSync(library, 0o755) };
}

const canRun =
  asUser.length === 0 || spawnSync(asUser[0]!, [...asUser.slice(1), process.execPath, "-e", "0"]).status === 0;

describe("a library", () => {
  it.for([
    ["is full", becomesFull, /^not enough space in LIBRARY_DIR/],
    ["is not mounted", goesAway, /^LIBRARY_DIR is not the folder that was used before/],
    [
      "refuses to be written to",
      refusesWriting,
      /^cannot put the file into the library: permission is denied \(EACCES\)$/,
    ],
  ] as const)("that %s gets its files once that is over", async ([, open, message], test) => {
    const trouble = open();
    if (trouble === undefined || !canRun) {
      test.skip("needs the right to mount a disk, and to become another user");
      return;
    }
    const site = await openSite();
    for (const title of ["First", "Second", "Third"]) site.resources.set(title, page(title));
    const cluster = openTestCluster("sqlite:", { LIBRARY_DIR: trouble.library, LIBRARY_TEMPLATE: "{title}" });
    if (isRoot) chownSync(cluster.dataDir, user, user);
    const client = await clientOf(await cluster.start("all", {}, asUser));
    const post = async (title: string) => (await client.post(site.url(title))).id;
    await placedBy(client, await post("First"));

    trouble.begin();
    const id = await post("Second");
    const failed = await until(client, id, ({ file }) => file?.warnings?.length === 1);
    expect(failed).toMatchObject({ state: "succeeded", file: { warnings: [{ code: "library_failed" }] } });
    expect(failed.file?.warnings?.[0]?.message).toMatch(message);
    expect(Buffer.from(await (await client.file(id)).arrayBuffer()).equals(film)).toBe(true);

    trouble.end();
    // It is tried again every minute, and whenever a task succeeds.
    const next = await post("Third");
    expect((await placedBy(client, id)).file?.warnings).toEqual([]);
    await placedBy(client, next);
    expect(readdirSync(trouble.library).toSorted()).toEqual([
      ".unreel-library",
      "First.mp4",
      "Second.mp4",
      "Third.mp4",
    ]);
  });

  it("gets each file of several processes once, whose films all have one name", async () => {
    const library = newLibrary();
    const site = await openSite();
    const settings = {
      LIBRARY_DIR: library,
      LIBRARY_TEMPLATE: "{site_name|uploader|title}/{title}",
      LIBRARY_NFO: "on",
    };
    const cluster = openTestCluster(await openDatabase(), settings);
    const services = await Promise.all([cluster.start("all"), cluster.start("all"), cluster.start("worker")]);
    const clients = await Promise.all(services.slice(0, 2).map(async (service) => clientOf(service)));
    const ids = Array.from({ length: 8 }, async (_, n) => {
      site.resources.set(`watch${n}`, page(n % 2 === 0 ? "One film" : "one FILM"));
      return (await clients[n % 2]!.post(site.url(`watch${n}`))).id;
    });
    const paths: string[] = [];
    for (const id of await Promise.all(ids)) {
      const task = await placedBy(clients[0]!, id);
      expect(task.file?.warnings).toEqual([]);
      paths.push(...task.library!.map(({ path }) => path));
    }
    const listed = readdirSync(library, { recursive: true, encoding: "utf8" }).filter((name) =>
      /\.(mp4|nfo)$/.test(name),
    );
    expect(listed.toSorted()).toEqual(paths.toSorted());
    expect(new Set(paths.map((path) => path.toLowerCase())).size).toBe(16);
  });
});
