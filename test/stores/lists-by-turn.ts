import type { TaskStore } from "../../src/stores/store.ts";

/** Returns the store with a count of the pages of lists that are read in each turn of the event loop. */
export function countListsByTurn(counted: TaskStore) {
  let turn = 0;
  const pagesByTurn = new Map<number, number>();
  const store: TaskStore = {
    ...counted,
    async list(query) {
      pagesByTurn.set(turn, (pagesByTurn.get(turn) ?? 0) + 1);
      return counted.list(query);
    },
  };

  /** Resolves with what `work` resolves with, and the pages of each turn in which some were read, those before it as one turn. */
  async function during<T>(work: () => Promise<T>): Promise<{ result: T; pages: number[] }> {
    let isCounting = true;
    const count = () => {
      turn += 1;
      if (isCounting) setImmediate(count);
    };
    setImmediate(count);
    const result = await work();
    isCounting = false;
    return { result, pages: [...pagesByTurn.values()] };
  }

  return { store, during };
}
