import type { AccessKey } from "../../model/access-key.ts";
import {
  duplicateKeyError,
  keyNotFoundError,
  type KeyStore,
  parseKeys,
  type RequestCount,
} from "../key-store.ts";

/**
 * Creates a store of keys in memory.
 *
 * @param documents Keys as JSON, by name.
 * @param assertOpen Throws if the store is closed.
 */
export function createMemoryKeys(
  documents: Map<string, string>,
  assertOpen: () => unknown,
  countRequest: (name: string) => RequestCount,
): KeyStore {
  return {
    async add(key: AccessKey) {
      assertOpen();
      if (documents.has(key.name)) throw duplicateKeyError(key.name);
      documents.set(key.name, JSON.stringify(key));
    },
    async list() {
      assertOpen();
      return parseKeys([...documents.values()]);
    },
    async remove(name) {
      assertOpen();
      if (!documents.delete(name)) throw keyNotFoundError(name);
    },
    async countRequest(name) {
      assertOpen();
      return countRequest(name);
    },
  };
}
