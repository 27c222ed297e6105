import { rm } from "node:fs/promises";
import { isUpstreamError } from "../../../model/errors.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { fetchMatroskaPart } from "./fetch-matroska-part.ts";
import { fetchMp4Part } from "./fetch-mp4-part.ts";
import {
  headBytes,
  openPartialFile,
  type PartialFile,
  type PartialMedia,
  type PartialMediaOptions,
} from "./partial-file.ts";

/**
 * Fetches what ranges need of the media in one file, into a file at `path`. Returns `null` if that cannot be seen from its
 * index, or the server sends no parts (RFC 9110 §14), or nothing shows that they belong to one representation (§13.1.5), or
 * they are most of it.
 *
 * @throws ServiceError of `fetch`, but those of the server; the file system's own errors.
 */
export async function fetchPartialMedia(path: string, options: PartialMediaOptions): Promise<PartialMedia | null> {
  const sparse = `${path}.sparse`;
  try {
    await using file = await openPartialFile(sparse, options.fetch);
    await file.fetch({ start: 0, end: headBytes });
    return await fetchOf(file, path, options);
  } catch (error) {
    // All of it may be had: at another place, too.
    if (isUpstreamError(error)) return null;
    throw error;
  } finally {
    await rm(sparse, { force: true });
  }
}

async function fetchOf(file: PartialFile, path: string, options: PartialMediaOptions): Promise<PartialMedia | null> {
  const container = sniffContainer(await file.read({ start: 0, end: headBytes }));
  if (container === "webm") return fetchMatroskaPart(file, path, options);
  return container === "mp4" ? fetchMp4Part(file, path, options) : null;
}
