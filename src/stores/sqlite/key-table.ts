import { duplicateKeyError, keyNotFoundError, type KeyStore, parseKeys } from "../key-store.ts";
import { createRequestCounter } from "../request-counter.ts";
import type { Statements } from "./statements.ts";

/** How the store runs a job: reads at once, writes in a transaction of their own or with others. */
export interface KeyTableOptions {
  sql: Statements;
  read<T>(job: () => T): Promise<T>;
  write(job: () => { result: undefined }): Promise<undefined>;
  steadyMs: () => number;
  /** Called in the transaction of each change. */
  onChange: () => void;
}

/** The table `keys`. */
export function createKeyTable({
  sql,
  read,
  write,
  steadyMs,
  onChange,
}: KeyTableOptions): KeyStore {
  const count = createRequestCounter(steadyMs);
  return {
    async add(key) {
      const { name } = key;
      const document = JSON.stringify(key);
      await write(() => {
        if (sql.addKey.run(name, document).changes === 0) throw duplicateKeyError(name);
        onChange();
        return { result: undefined };
      });
    },
    list: () =>
      read(() => {
        const rows = sql.allKeys.all() as { document: string }[];
        return parseKeys(rows.map(({ document }) => document));
      }),
    async remove(name) {
      await write(() => {
        if (sql.removeKey.run(name).changes === 0) throw keyNotFoundError(name);
        onChange();
        return { result: undefined };
      });
    },
    /** In memory, as no other process has the file open. */
    countRequest: (name) => read(() => count(name)),
  };
}
