import { timingSafeEqual } from "node:crypto";
import type { BaseLogger } from "pino";
import type { AccessKey } from "../model/access-key.ts";
import { hashOf } from "./secrets.ts";
import { isServiceError } from "../model/errors.ts";
import type { KeyStore } from "../stores/key-store.ts";

export type KeyRing = Awaited<ReturnType<typeof openKeyRing>>;

export interface KeyRingOptions {
  keys: KeyStore;
  logger?: Pick<BaseLogger, "info" | "warn"> | undefined;
  /** How often the store is read: other processes may change it; default 1,000. */
  pollMs?: number;
}

/**
 * Reads the keys into memory, where every request looks for its own, and follows their changes. While the store cannot be read, the keys stay as they were.
 *
 * @throws the store's error if it cannot be read at first.
 */
export async function openKeyRing(options: KeyRingOptions) {
  const { keys: store } = options;
  const listeners = new Set<() => void>();
  let ring = await readRing(store);
  let reading: Promise<void> | undefined;
  let isClosed = false;

  async function read(): Promise<void> {
    const next = await readRing(store, ring);
    if (isClosed || next === ring) return;
    ring = next;
    for (const listener of listeners) listener();
  }

  /** Reads the store after the present reading, which may have begun before a change; rejects with the store's error. */
  function refresh(): Promise<void> {
    const next = (reading ?? Promise.resolve()).catch(() => {}).then(read);
    reading = next;
    return next;
  }

  const stopPolling = poll(refresh, options);
  return {
    /** There is no key, so everybody may do everything. */
    get isEmpty(): boolean {
      return ring.size === 0;
    },
    /** Returns the key with this secret, in a time that does not reveal how much of the secret is right. */
    find: (secret: string) => ring.find(secret),
    /** Returns the key whose sessions have this secret; otherwise as `find`. */
    findSession: (secret: string) => ring.findSession(secret),
    /** Whether a caller is still let in: the key with this `hash` is still there, or, of `null`, there are none. */
    admits: (hash: string | null) => (hash === null ? ring.size === 0 : ring.hasHash(hash)),
    /** Calls `listener` after each change. Returns the function that ends this. */
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    refresh,
    /** Reads the store no more; safe to call twice. */
    close(): void {
      isClosed = true;
      stopPolling();
    },
  };
}

/** Calls `read` every `pollMs`, and logs when it begins to fail and works again. Returns the function that ends this. */
function poll(
  read: () => Promise<void>,
  { logger, pollMs = 1_000 }: Pick<KeyRingOptions, "logger" | "pollMs">,
): () => void {
  let isFailing = false;
  let isStopped = false;

  async function readOnce(): Promise<void> {
    try {
      await read();
      if (isFailing) logger?.info("access keys are read again");
      isFailing = false;
    } catch (err) {
      // Stores log when they are unavailable.
      const isOutage = isServiceError(err, "unavailable");
      if (isOutage) return;
      if (!isFailing && !isStopped) logger?.warn({ err }, "access keys could not be read");
      isFailing = true;
    } finally {
      if (!isStopped) timer.refresh();
    }
  }

  const timer = setTimeout(() => void readOnce(), pollMs).unref();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** Returns `known` if the keys are still the same. */
async function readRing(store: KeyStore, known?: Ring): Promise<Ring> {
  const listed = await store.list();
  const text = JSON.stringify(listed);
  return known?.text === text ? known : createRing(listed, text);
}

type Ring = ReturnType<typeof createRing>;

/** @param text Equal for equal keys. */
function createRing(keys: readonly AccessKey[], text: string) {
  const byHash = createIndex(keys, ({ hash }) => hash);
  const bySessionHash = createIndex(keys, (key) => key.session_hash);
  return {
    size: keys.length,
    text,
    find: (secret: string) => byHash(hashOf(secret)),
    findSession: (secret: string) => bySessionHash(hashOf(secret)),
    hasHash: (hash: string) => byHash(hash) !== undefined,
  };
}

/** Characters of a hash by which its key is looked up; the rest is compared in constant time. */
const indexLength = 16;

function createIndex(keys: readonly AccessKey[], hashIn: (key: AccessKey) => string) {
  const entries = keys.map((key) => ({ key, hash: Buffer.from(hashIn(key)) }));
  const index = new Map(entries.map((entry) => [entry.hash.toString("latin1", 0, indexLength), entry]));
  return (hash: string): AccessKey | undefined => {
    const entry = index.get(hash.slice(0, indexLength));
    return entry && timingSafeEqual(entry.hash, Buffer.from(hash)) ? entry.key : undefined;
  };
}
