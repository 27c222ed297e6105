import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { expect, onTestFinished } from "vitest";
import { makeFolder } from "../folder.ts";
import { openPartStore, type PartStore, type PartStoreOptions } from "../../src/engines/native/parts/part-store.ts";
import type { FetchedPart, FetchOptions, Part } from "../../src/engines/native/parts/stored-part.ts";
import { createHttpClient, type HttpClientOptions } from "../../src/net/http/http-client.ts";
import { type MediaServer, startMediaServer } from "../media/server.ts";

export const MiB = 1024 * 1024;

/** Returns pseudo-random bytes, the same for the same seed. */
export function mediumOf(bytes: number, seed = 1): Buffer {
  const medium = Buffer.alloc(bytes);
  let state = seed;
  for (let at = 0; at < bytes; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    medium[at] = state >>> 24;
  }
  return medium;
}

export interface PartsHarness {
  server: MediaServer;
  folder: string;
  /** Opens the part store in `folder`, as after a restart of the process. */
  open(options?: Partial<PartStoreOptions>): Promise<PartStore>;
  /** Fetches part `file` from `/medium`. */
  fetch(parts: PartStore, options?: Partial<FetchOptions & Part>): Promise<FetchedPart>;
}

/** Starts a media server, a client and an empty folder for the current test. */
export async function startPartsHarness(clientOptions: HttpClientOptions = {}): Promise<PartsHarness> {
  const server = await startMediaServer();
  const folder = makeFolder();
  const client = createHttpClient({
    allowNetworks: ["127.0.0.1/32"],
    totalTimeoutMs: Number.POSITIVE_INFINITY,
    perHost: 8,
    maxPauseMs: 30_000,
    ...clientOptions,
  });
  const opened: PartStore[] = [];
  onTestFinished(async () => {
    await server.close();
    for (const parts of opened) await parts.close();
    await client.close();
  });
  return {
    server,
    folder,
    async open(options = {}) {
      const parts = await openPartStore({
        folder,
        client,
        identity: "format 1",
        maxBytes: Number.POSITIVE_INFINITY,
        checkFreeSpace: async () => {},
        backoffMs: 1,
        ...options,
      });
      opened.push(parts);
      return parts;
    },
    fetch(parts, { name = "file", url = server.url("/medium"), range = null, ...options } = {}) {
      const signal = AbortSignal.timeout(60_000);
      return parts.fetch({ name, url, range, ...options }, { signal, ...options });
    },
  };
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export const hashOfFile = async (path: string): Promise<string> => sha256(await readFile(path));

/** Fetches `/medium` and aborts once `bytes` are stored. */
export async function leaveAfter(harness: PartsHarness, bytes: number): Promise<void> {
  const parts = await harness.open();
  const abort = new AbortController();
  const onBytes = () => {
    if (parts.bytes >= bytes) abort.abort(new Error("left"));
  };
  await expect(harness.fetch(parts, { signal: abort.signal, onBytes })).rejects.toThrow("left");
  await parts.close();
}
