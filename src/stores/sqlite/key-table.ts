import { createKeyStore, createRequestCounter, type KeyStore } from "../key-store.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** Opens the table `keys`; `onChange` is called in the transaction of each change. */
export function createKeyTable(
  sql: Statements,
  { read, write }: Transactions,
  steadyMs: () => number,
  onChange: () => void,
): KeyStore {
  /** In memory, as no other process has the file open. */
  const count = createRequestCounter(steadyMs);
  return createKeyStore({
    add: (name, document) =>
      write(() => {
        onChange();
        return sql.addKey.run(name, document).changes > 0;
      }),
    list: () => read(() => (sql.allKeys.all() as { document: string }[]).map((row) => row.document)),
    remove: (name) =>
      write(() => {
        onChange();
        return sql.removeKey.run(name).changes > 0;
      }),
    countRequest: (name) => read(() => count(name)),
  });
}
