import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { pino } from "pino";
import { makeFolder } from "../../folder.ts";
import { openLibrary } from "../../../src/runner/library/library.ts";
import { parseTemplate } from "../../../src/runner/library/template.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createTestFiles } from "../files.ts";
import { createRunnerHarness } from "../harness.ts";
import { buildApp } from "../../http/app.ts";
import { createLibraryHarness } from "./harness.ts";
import { openApp } from "../../http/open-app.ts";

/** Runs a task with a library until its file is there. */
async function placeOne() {
  const folder = makeFolder();
  const dir = join(folder, "films");
  mkdirSync(dir);
  const [store, files] = [createMemoryStore(), createTestFiles()];
  const library = await openLibrary({
    folder: dir,
    jobsFolder: join(folder, "jobs"),
    store,
    files,
    template: parseTemplate("{title}"),
    isLink: false,
    mode: 0o644,
    hasNfo: false,
    minFreeBytes: 0,
    isFiller: true,
    logger: pino({ level: "silent" }),
  });
  const { runner, add, until } = createRunnerHarness({ store, files, library });
  onTestFinished(() => library.stop());
  const app = await openApp({ store, files, library });
  library.start();
  runner.start();
  const { id } = await add();
  await until(id, ({ library: placed }) => placed !== undefined);
  return { app, id, path: join(dir, "A film.mp4"), results: () => files.results(), dir, store };
}

it("the file of a task that is run is put into the library, and stays when the task is deleted", async () => {
  const { app, id, path, results } = await placeOne();
  const task = (await app.inject(`/tasks/${id}`)).json();
  expect(task).toMatchObject({ state: "succeeded", library: [{ path: "A film.mp4" }], file: { warnings: [] } });
  const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=false` });
  expect([statusCode, results(), existsSync(path)]).toEqual([204, [], true]);
});

it("DELETE with ?library=true removes a task and its file in the library", async () => {
  const { app, id, dir, store } = await placeOne();
  const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=true` });
  expect([statusCode, await store.get(id), readdirSync(dir)]).toEqual([204, undefined, [".unreel-library"]]);
});

it("DELETE with ?library=true leaves nothing there of a task that would succeed meanwhile", async () => {
  const { store, files, folder, open, add, untilPlaced, listed } = createLibraryHarness();
  const library = await open();
  library.start();
  const { id, succeed } = await add(library, { title: "A film" });
  // It still downloads.
  rmSync(join(folder, "data", "library", `${id}.json`));
  const app = await buildApp({
    store: {
      ...store,
      async delete(taskId) {
        await library.expect(taskId);
        await succeed().then(
          () => untilPlaced(taskId),
          () => undefined,
        );
        return store.delete(taskId);
      },
    },
    files,
    library,
  });
  onTestFinished(() => app.close());
  const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=true` });
  expect([statusCode, await store.get(id), listed()]).toEqual([204, undefined, []]);
});

it("DELETE of the file with ?library=true keeps the task, which then has none there", async () => {
  const { app, id, dir } = await placeOne();
  const response = await app.inject({ method: "DELETE", url: `/tasks/${id}/file?library=true` });
  expect(response.json()).toMatchObject({ state: "succeeded", file: null, library: [] });
  expect(readdirSync(dir)).toEqual([".unreel-library"]);
});

it("DELETE with ?library=true is refused while the service has no library, if the task has files there", async () => {
  const { id, path, store } = await placeOne();
  const app = await openApp({ store, files: createTestFiles() });
  for (const url of [`/tasks/${id}?library=true`, `/tasks/${id}/file?library=true`]) {
    const response = await app.inject({ method: "DELETE", url });
    expect(response.json()).toMatchObject({ code: "conflict", detail: expect.stringContaining('"A film.mp4"') });
  }
  expect([existsSync(path), (await store.get(id))?.file]).toMatchObject([true, { name: "A film.mp4" }]);
});

it("DELETE refuses another value of library", async () => {
  const { app, id, path } = await placeOne();
  const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=yes` });
  expect([statusCode, existsSync(path)]).toEqual([400, true]);
});
