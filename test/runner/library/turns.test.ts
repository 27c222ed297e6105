import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { Filler } from "../../../src/runner/library/filler.ts";
import { createLibraryJobs } from "../../../src/runner/library/jobs.ts";
import { parseTemplate } from "../../../src/runner/library/template.ts";
import { createLibraryHarness } from "./harness.ts";

/** Returns the titles of the files in the order in which they were put there. */
function titlesIn(log: ReturnType<typeof createLibraryHarness>["log"]): string[] {
  const placed = log.filter(({ msg }) => msg === "put into the library");
  return placed.map(({ path }) => String(path).replace(/\.mp4$/, ""));
}

test("owners take turns when their files are put into the library", async () => {
  const { open, add, untilPlaced, log } = createLibraryHarness();
  const library = await open({ template: parseTemplate("{title}") });
  const added = [];
  for (const [n, owner] of ["eve", "eve", "eve", "bob", "eve", "eve", "eve"].entries())
    added.push(await add(library, { title: `${n} of ${owner}` }, [], owner));
  for (const { succeed } of added) await succeed();
  library.start();
  for (const { id } of added) await untilPlaced(id);
  expect(titlesIn(log).indexOf("3 of bob")).toBeLessThan(2);
});

test("a file that comes while many of another owner are put there does not wait for all of them", async () => {
  const { store, open, add, untilPlaced, log } = createLibraryHarness();
  const library = await open({ template: parseTemplate("{title}"), passMs: 0 });
  const added = [];
  for (let n = 0; n < 9; n += 1) added.push(await add(library, { title: `eve ${n}` }, [], "eve"));
  const last = await add(library, { title: "bob" }, [], "bob");
  for (const { succeed } of added) await succeed();
  const first = Promise.withResolvers<void>();
  store.events.subscribe(({ json }) => {
    if (json.includes('"library":[{')) first.resolve();
  });
  library.start();
  await first.promise;
  await last.succeed();
  for (const { id } of [...added, last]) await untilPlaced(id);
  expect(titlesIn(log).indexOf("bob")).toBeLessThan(5);
});

/** Returns what does the jobs of a library in `dir`, pass by pass. */
function createFiller({ folder, store, files }: ReturnType<typeof createLibraryHarness>, dir: string, changed = {}) {
  const jobsFolder = join(folder, "data", "library");
  const jobs = createLibraryJobs(jobsFolder);
  const filler = new Filler({
    template: parseTemplate("{title}"),
    isLink: false,
    mode: 0o644,
    hasNfo: false,
    minFreeBytes: 0,
    store,
    files,
    folder: dir,
    jobsFolder,
    jobs: { ...jobs, ...changed },
    logger: pino({ level: "silent" }),
    retryMs: 60_000,
    signal: new AbortController().signal,
  });
  return { jobs, pass: () => filler.pass(new AbortController().signal) };
}

test("jobs that wait for a disk that is away are not read again whenever a task succeeds", async () => {
  const harness = createLibraryHarness();
  const library = await harness.open();
  for (let n = 0; n < 20; n += 1) await (await harness.add(library, { title: `${n}` })).succeed();
  let reads = 0;
  const { jobs, pass } = createFiller(harness, join(harness.folder, "away"), {
    read(id: string) {
      reads += 1;
      return jobs.read(id);
    },
  });
  const readsOfPass = async () => {
    const before = reads;
    await pass();
    return reads - before;
  };
  expect(await readsOfPass()).toBeGreaterThanOrEqual(20);
  expect(await readsOfPass()).toBeLessThan(5);
});

test("a name that was chosen before the service was killed goes to no other file of the same size and time", async () => {
  const harness = createLibraryHarness();
  const { open, add, dir, store, listed } = harness;
  const library = await open();
  const { jobs, pass } = createFiller(harness, dir);
  // Then it is the turn of the others.
  await (await add(library, { title: "Before" }, [], "eve")).succeed();
  await pass();
  const [killed, other] = [
    await add(library, { title: "A film" }, [], "eve"),
    await add(library, { title: "A film" }, [], "bob"),
  ];
  const [task] = [await killed.succeed(), await other.succeed()];
  const modified_at = new Date(Math.floor(Date.parse(task.finished_at ?? "") / 2_000) * 2_000).toISOString();
  await jobs.write(killed.id, { kind: "place", owner: "eve", files: [{ path: "A film.mp4", size: 100, modified_at }] });
  await pass();
  const paths = await Promise.all([killed, other].map(async ({ id }) => (await store.get(id))?.library?.[0]?.path));
  expect(paths).toEqual(["A film.mp4", "A film (2).mp4"]);
  expect(listed()).toEqual(["A film (2).mp4", "A film.mp4", "Before.mp4"]);
});
