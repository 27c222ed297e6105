import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { ReadKind } from "../../../src/resolvers/page/reader/reader.ts";

export interface PageBytes {
  bytes: Uint8Array;
  url: string;
  kind: ReadKind;
}

/** Reads pages in a process of its own, which ends if its heap does not suffice. */
export class PageReader implements AsyncDisposable {
  readonly #heapMiB: number;
  #child: ChildProcess | null = null;

  constructor(heapMiB: number) {
    this.#heapMiB = heapMiB;
  }

  /** Returns the CPU time that reading a page took, milliseconds. Rejects if the process ends before the page has been read. */
  async read(page: PageBytes): Promise<number> {
    const child = (this.#child ??= this.#start());
    child.send(page);
    const ended = new AbortController();
    const { signal } = ended;
    const end = once(child, "exit", { signal }).then(
      () => null,
      () => null,
    );
    const [cost] = ((await Promise.race([once(child, "message", { signal }), end])) ?? []) as [number?];
    ended.abort();
    if (cost !== undefined) return cost;
    this.#child = null;
    throw new Error(`a heap of ${this.#heapMiB} MiB does not suffice`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.kill() === true) await once(this.#child, "exit");
  }

  #start(): ChildProcess {
    return fork(new URL("./child.ts", import.meta.url), {
      execArgv: [`--max-old-space-size=${this.#heapMiB}`, "--max-semi-space-size=8"],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
  }
}
