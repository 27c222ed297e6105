import { TypeCompiler } from "@sinclair/typebox/compiler";
import { AccessKey } from "../model/access-key.ts";
import { ServiceError } from "../model/errors.ts";

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
   * @throws ServiceError `internal` if a stored one is damaged: without it, nobody could tell whether the
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

export interface RequestCount {
  /** Requests in this minute, with this one. */
  count: number;
  /** When the minute ends, milliseconds from now. */
  endsInMs: number;
}

const keyCheck = TypeCompiler.Compile(AccessKey);

/** @throws ServiceError `internal` if one of the documents is not a valid key. */
export function parseKeys(documents: readonly string[]): AccessKey[] {
  const keys = documents.map(parseKey);
  return keys.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns a function that parses the document of the key of this name, unless it is the same as last time. */
export function createKeyParser(): (name: string, document: string) => AccessKey {
  const parsed = new Map<string, { document: string; key: AccessKey }>();
  return (name, document) => {
    const last = parsed.get(name);
    if (last?.document === document) return last.key;
    const key = parseKey(document);
    parsed.set(name, { document, key });
    return key;
  };
}

/** @throws ServiceError `internal` if it is not a valid key. */
export function parseKey(document: string): AccessKey {
  const value = parseJson(document);
  if (keyCheck.Check(value)) return value;
  // Without the document, which has hashes.
  throw new ServiceError("internal", "the record of an access key is damaged", {
    retryable: false,
  });
}

function parseJson(document: string): unknown {
  try {
    return JSON.parse(document);
  } catch {
    return undefined;
  }
}

export function duplicateKeyError(name: string): ServiceError {
  return new ServiceError("conflict", `there is a key ${name} already`);
}

export function keyNotFoundError(name: string): ServiceError {
  return new ServiceError("not_found", `there is no key ${name.slice(0, 100)}`);
}
