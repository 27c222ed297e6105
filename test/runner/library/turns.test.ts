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

test("jobs that wait for a disk that is away are not read again whenever a task succeeds", async () => {
  const { open, add, folder, store, files } = createLibraryHarness();
  const library = await open();
  for (let n = 0; n < 20; n += 1) await (await add(library, { title: `${n}` })).succeed();
  const jobsFolder = join(folder, "data", "library");
  const jobs = createLibraryJobs(jobsFolder);
  let reads = 0;
  const read = (id: string) => {
    reads += 1;
    return jobs.read(id);
  };
  const template = parseTemplate("{title}");
  const placement = { template, isLink: false, mode: 0o644, hasNfo: false, minFreeBytes: 0 };
  const filler = new Filler({
    ...placement,
    store,
    files,
    folder: join(folder, "away"),
    jobsFolder,
    jobs: { ...jobs, read },
    logger: pino({ level: "silent" }),
    retryMs: 60_000,
    signal: new AbortController().signal,
  });
  const pass = async () => {
    const before = reads;
    await filler.pass(new AbortController().signal);
    return reads - before;
  };
  expect(await pass()).toBeGreaterThanOrEqual(20);
  expect(await pass()).toBeLessThan(5);
});
