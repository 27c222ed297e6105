import { afterEach, describe, expect, it } from "vitest";
import type { TaskOptions } from "../../src/model/task.ts";
import type { App } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { buildApp } from "./app.ts";
import { pageUrl, postTask } from "./requests.ts";

let app: App;
afterEach(() => app.close());

const defaultOptions: TaskOptions = { max_height: 1080, subtitles: true, skip: ["sponsor"] };

describe("the service's own options of tasks", () => {
  it.each<[TaskOptions | undefined, TaskOptions]>([
    [undefined, defaultOptions],
    [
      { embed: true, subtitles: false },
      { max_height: 1080, subtitles: false, skip: ["sponsor"], embed: true },
    ],
    [{ skip_mode: "chapters" }, { ...defaultOptions, skip_mode: "chapters" }],
    [{ max_height: 360 }, { ...defaultOptions, max_height: 360 }],
    // A request that chooses a format chooses all of it.
    [{ format_id: "hls-2200" }, { format_id: "hls-2200", subtitles: true, skip: ["sponsor"] }],
    [{ audio_only: true }, { audio_only: true, subtitles: true, skip: ["sponsor"] }],
  ])("hold for what a request leaves open: %j → %j", async (options, all) => {
    app = await buildApp({ defaultOptions });
    expect((await postTask(app, { url: pageUrl, options })).json().options).toEqual(all);
    const batch = { method: "POST", url: "/tasks/batch", payload: { urls: [pageUrl], options } } as const;
    expect((await app.inject(batch)).json().results[0].task.options).toEqual(all);
  });

  it("hold for /download, whose own default is to take the task that exists", async () => {
    const store = createMemoryStore();
    app = await buildApp({ defaultOptions: { embed: true, if_exists: "new" }, store });
    const { id } = (await postTask(app, { url: pageUrl })).json();
    await app.inject({ method: "POST", url: `/tasks/${id}/cancel` });
    const response = app.inject(`/download?url=${encodeURIComponent(pageUrl)}`);
    const made = () => app.inject("/tasks/?state=queued").then((list) => list.json().tasks[0]);
    const task = await expect.poll(made).toBeDefined().then(made);
    expect(task.options).toEqual({ if_exists: "reuse", embed: true });
    await app.inject({ method: "POST", url: `/tasks/${task.id}/cancel` });
    expect((await response).statusCode).toBe(409);
  });

  it("are no part of a request that is sent again, after they have changed too", async () => {
    const store = createMemoryStore();
    const post = () => postTask(app, { url: pageUrl }, { "idempotency-key": "a" });
    app = await buildApp({ defaultOptions, store });
    const { id } = (await post()).json();
    await app.close();
    app = await buildApp({ defaultOptions: { max_height: 720 }, store });
    const again = await post();
    expect([again.statusCode, again.json().id]).toEqual([201, id]);
  });
});
