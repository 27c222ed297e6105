import { TypeCompiler } from "@sinclair/typebox/compiler";
import { AccessKey } from "../model/access-key.ts";
import { ServiceError } from "../model/errors.ts";
import { parseJson } from "../model/schema.ts";

/**
 * The access keys of a store, some thousands at most. As with tasks, a change is durable when its promise
 * resolves, keys go by value, and a store that is unreachable or closed rejects with `unavailable`.
 */
export interface KeyStore {
  /** @throws ServiceError `conflict` if there is a key of this name. */
  add(key: AccessKey): Promise<void>;
  /**
   * Returns all keys, by name.
   *
   * @throws ServiceError `internal` if a stored one is damaged: without it, it would be unknown whether the
   * service is open to all.
   */
  list(): Promise<AccessKey[]>;
  /** @throws ServiceError `not_found` if there is no key of this name. */
  remove(name: string): Promise<void>;
  /**
   * Counts a request of the key of this name, together with those of all processes in the same minute, which
   * begins with its first request. The count need not outlive the store.
   */
  countRequest(name: string): Promise<RequestCount>;
}

interface RequestCount {
  /** Requests in this minute, with this one. */
  count: number;
  /** When the minute ends, milliseconds from now. */
  endsInMs: number;
}

/** Where a store keeps its keys, as JSON by name. */
interface KeyDocuments extends Pick<KeyStore, "countRequest"> {
  /** Returns false, with nothing changed, if there is one of this name. */
  add(name: string, document: string): Promise<boolean>;
  list(): Promise<string[]>;
  /** Returns false if there is none. */
  remove(name: string): Promise<boolean>;
}

/** Creates the keys of a store that keeps their documents. */
export function createKeyStore(documents: KeyDocuments): KeyStore {
  return {
    async add(key) {
      const { name } = key;
      if (await documents.add(name, JSON.stringify(key))) return;
      throw new ServiceError("conflict", `there is a key ${name} already`);
    },
    async list() {
      const keys = (await documents.list()).map(parseKey);
      return keys.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
    async remove(name) {
      if (await documents.remove(name)) return;
      throw new ServiceError("not_found", `there is no key ${name.slice(0, 100)}`);
    },
    countRequest: documents.countRequest,
  };
}

/** How long requests are counted together. */
export const countWindowMs = 60_000;

const keyCheck = TypeCompiler.Compile(AccessKey);

/** @throws ServiceError `internal` if it is not a valid key. */
export function parseKey(document: string): AccessKey {
  const value = parseJson(document);
  if (keyCheck.Check(value)) return value;
  // Without the document, which has hashes.
  throw new ServiceError("internal", "the record of an access key is damaged", {
    retryable: false,
  });
}
