import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { TaskOptions } from "../../model/task.ts";
import { readOptions } from "../routes/new-task.ts";
import { PageUrl } from "../routes/page-url.ts";

/** Without `entries`: a download is one file. */
const { entries: _, if_exists, ...options } = TaskOptions.properties;

const ifExistsDescription =
  "what if the same video with the same options is queued, running or has its file: `reuse`, the default: that task; `new`: a new task";

/** A page, and the options of a task: each is a parameter with the same value as in the body of `POST /tasks/`. */
export const DownloadQuery = Type.Object(
  {
    url: { ...PageUrl, description: `${PageUrl.description}; percent-encoded` },
    ...parametersOf(options),
    if_exists: { ...if_exists, description: ifExistsDescription },
  },
  { additionalProperties: false },
);

/** Says that lists and objects are JSON (OpenAPI 3.1 §4.8.12.2); numbers, `true` and `false` are so without saying. */
function parametersOf<T extends Record<string, TSchema>>(properties: T): T {
  const inJson = Object.entries(properties).map(([name, schema]) => {
    if (["string", "integer", "boolean"].includes(schema["type"])) return [name, schema];
    return [name, { ...schema, "x-consume": "application/json" }];
  });
  return Object.fromEntries(inJson);
}

/**
 * Returns the options of the task that the parameters ask for.
 *
 * @throws ServiceError as `readOptions`
 */
export function readDownloadOptions({ url: _url, ...given }: Static<typeof DownloadQuery>): TaskOptions {
  return readOptions({ if_exists: "reuse", ...given }, { part: "query", pointer: "" });
}
