import { newTask } from "../../src/feed/task-changes.ts";
import { type ErrorCode, errorCodes } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { type AppResponse, withApp } from "./failing-app.ts";
import { pageUrl, postTask } from "./requests.ts";
import { fileCalls } from "./task-calls.ts";

const name = "get /tasks/{id}/stream";

/** For each documented response of the routes that send media while they are downloaded, a call that gets it. */
export const streamCalls: Record<string, () => Promise<AppResponse>> = {
  ...fileCalls(name, "stream"),
  [`${name} 409`]: () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      await app.inject({ method: "POST", url: `${url}/cancel` });
      return app.inject(`${url}/stream`);
    }),
  [`${name} 422`]: () => getFailed("no_media"),
  [`${name} 429`]: () => getFailed("quota_exceeded"),
  [`${name} 502`]: () => getFailed("upstream_status"),
  [`${name} 504`]: () => getFailed("upstream_timeout"),
  [`${name} 507`]: () => getFailed("disk_full"),
};

/** Asks for the stream of a task that has failed in this way. */
async function getFailed(code: ErrorCode): Promise<AppResponse> {
  const store = createMemoryStore();
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  const error = { code, message: `failed with ${code}`, retryable: errorCodes[code].retryable };
  await store.update(id, { state: "failed", error });
  return withApp({ store }, (app) => app.inject(`/tasks/${id}/stream`));
}
