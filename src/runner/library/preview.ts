import { Value } from "@sinclair/typebox/value";
import { newTask } from "../../feed/task-changes.ts";
import { ServiceError } from "../../model/errors.ts";
import { PageInfo } from "../../model/page-info.ts";
import { chooseFormat } from "../../resolvers/choose-format.ts";
import { nameFiles } from "./names.ts";
import type { Template } from "./template.ts";

/**
 * Returns the path below LIBRARY_DIR that the file of a page would have in an empty library.
 *
 * @param found What a resolver has returned for the page.
 * @throws ServiceError `no_media` if that is no page information; as `chooseFormat`
 */
export function previewPath(page: URL, found: unknown, template: Template): string {
  if (!Value.Check(PageInfo, found)) throw new ServiceError("no_media", "the resolver reads no pages");
  const { format } = chooseFormat(found, {}, null);
  const name = `film.${format.ext ?? "mp4"}`;
  const file = { kind: "media", name, mime_type: "video/mp4", size: 0, sha256: "", url: "" } as const;
  const task = { ...newTask(page.href, {}, new Date()), info: found, files: [file] };
  const { folders, names } = nameFiles(task, template);
  return [...folders, ...names].join("/");
}
