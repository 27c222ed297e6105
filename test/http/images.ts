import { newTask } from "../../src/feed/task-changes.ts";
import type { PageInfo, Thumbnail } from "../../src/model/page-info.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { samplePageInfo } from "../contracts/task-store/page-info.ts";

const padding = Buffer.alloc(200, "\0");

/** The first bytes of an image of each type that is passed on, and some more. */
export const images = {
  "image/jpeg": signed("\xFF\xD8\xFF\xE0\0\x10JFIF\0"),
  "image/png": signed("\x89PNG\r\n\x1A\n\0\0\0\rIHDR"),
  "image/gif": signed("GIF89a\x01\0\x01\0"),
  "image/webp": signed("RIFF\xD0\0\0\0WEBPVP8L"),
  "image/avif": signed("\0\0\0\x1Cftypmif1\0\0\0\0mif1avifmiaf"),
};

function signed(signature: string): Buffer {
  return Buffer.concat([Buffer.from(signature, "latin1"), padding]);
}

/** Returns page information with these thumbnails; each is a URL or has a width too. */
export function illustrated(pageUrl: string, ...thumbnails: (string | Partial<Thumbnail>)[]): PageInfo {
  const listed = thumbnails.map((given) => ({
    url: "",
    width: null,
    height: null,
    ...(typeof given === "string" ? { url: given } : given),
  }));
  return { ...samplePageInfo(), url: pageUrl, webpage_url: pageUrl, thumbnails: listed };
}

/** Stores a task with this page information. Returns its path. */
export async function addIllustrated(store: TaskStore, info: PageInfo | null): Promise<string> {
  const { id } = await store.create(newTask("https://example.com/watch/42", {}, new Date()));
  if (info !== null) await store.update(id, { info });
  return `/tasks/${id}`;
}
