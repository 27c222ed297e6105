import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { Filler, type FillerOptions } from "../../../src/runner/library/filler.ts";
import { createLibraryJobs, type LibraryJobs } from "../../../src/runner/library/jobs.ts";
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

interface Changed extends Omit<Partial<FillerOptions>, "jobs"> {
  jobs?: Partial<LibraryJobs>;
}

/** Returns what does the jobs of a library in `dir`, pass by pass. */
function createFiller(
  { folder, store, files }: ReturnType<typeof createLibraryHarness>,
  dir: string,
  { jobs: changed, ...options }: Changed = {},
) {
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
    logger: pino({ level: "silent" }),
    retryMs: 60_000,
    signal: new AbortController().signal,
    ...options,
    jobs: { ...jobs, ...changed },
  });
  return { jobs, pass: () => filler.pass(new AbortController().signal) };
}

test("jobs that wait for a disk that is away are not read again whenever a task succeeds", async () => {
  const harness = createLibraryHarness();
  const library = await harness.open();
  for (let n = 0; n < 20; n += 1) await (await harness.add(library, { title: `${n}` })).succeed();
  let reads = 0;
  const { jobs, pass } = createFiller(harness, join(harness.folder, "away"), {
    jobs: {
      read(id) {
        reads += 1;
        return jobs.read(id);
      },
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

test.each(["the service", "another process"])(
  "a name that was chosen before %s was killed goes to no other file of the same size and time",
  async (killer) => {
    const harness = createLibraryHarness();
    const { open, add, dir, store, listed } = harness;
    const library = await open();
    const { jobs, pass } = createFiller(harness, dir);
    const killed = await add(library, { title: "A film" }, [], "eve");
    const other = await add(library, { title: "A film" }, [], "bob");
    // Then it is the turn of the others.
    await (await add(library, { title: "Before" }, [], "eve")).succeed();
    await pass();
    const [task] = [await killed.succeed(), await other.succeed()];
    const modified_at = new Date(Math.floor(Date.parse(task.finished_at ?? "") / 2_000) * 2_000).toISOString();
    const chooser = killer === "the service" ? jobs : createFiller(harness, dir).jobs;
    const files = [{ path: "A film.mp4", size: 100, modified_at }];
    if (killer === "the service") await jobs.write(killed.id, { kind: "place", owner: "eve", files });
    else {
      using _ = chooser.tryLock();
      await chooser.write(killed.id, { kind: "place", owner: "eve", files });
      expect(await pass()).toBe(false);
    }
    await pass();
    const paths = await Promise.all([killed, other].map(async ({ id }) => (await store.get(id))?.library?.[0]?.path));
    expect(paths).toEqual(["A film.mp4", "A film (2).mp4"]);
    expect(listed()).toEqual(["A film (2).mp4", "A film.mp4", "Before.mp4"]);
  },
);

test("names that are chosen for many files for which there is no space are looked up once in a pass", async () => {
  const harness = createLibraryHarness();
  const library = await harness.open();
  for (let n = 0; n < 20; n += 1) await (await harness.add(library, { title: `${n % 10}` })).succeed();
  let names = 0;
  const { jobs, pass } = createFiller(harness, harness.dir, {
    minFreeBytes: Number.MAX_SAFE_INTEGER,
    jobs: {
      namesOfOthers(id, folders) {
        const found = jobs.namesOfOthers(id, folders);
        names += found.length;
        return found;
      },
    },
  });
  await pass();
  expect(names).toBeLessThan(20);
  const chosen = await Promise.all((await jobs.ids()).map((id) => jobs.read(id)));
  expect(new Set(chosen.map((job) => job?.files?.[0]?.path)).size).toBe(20);
});

test("a name is free again once another process has ended the job that it was chosen for", async () => {
  const { folder } = createLibraryHarness();
  const [jobs, others] = [createLibraryJobs(folder), createLibraryJobs(folder)];
  const id = randomUUID();
  await others.write(id, { kind: "place", files: [{ path: "a/b.mp4", size: 1, modified_at: "" }] });
  await jobs.read(id);
  expect(jobs.namesOfOthers("", ["a"])).toEqual(["b.mp4"]);
  await others.remove(id);
  await jobs.ids();
  expect(jobs.namesOfOthers("", ["a"])).toEqual([]);
});
