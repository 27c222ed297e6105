import { untilAborted } from "../../../async/deadline.ts";
import { type Release, Shares } from "../../../async/shares.ts";
import { isMemorySmall } from "../../../system/memory.ts";
import type { ReadContext } from "./reader.ts";

/** Of one request: what it keeps beyond this counts as large. */
const maxSmallBytes = 512 * 1024;
/** Requests that keep large bodies at a time. */
const maxLarge = isMemorySmall ? 4 : 8;

/** Shorter chunks are joined to blocks: one of a byte takes a hundred, and may keep a buffer of 16 KiB. */
const minBlockBytes = 8 * 1024;
const blockBytes = 64 * 1024;

/**
 * Creates a bound for the memory of the bodies that wait to be read: eight requests at a time keep more than 512 KiB, four with less
 * than 1 GiB of memory, shared by owners; an owner that has none may be one more. Others wait before they receive more, which may take as long as a page may.
 */
export function createBodies() {
  const large = new Shares(maxLarge, "spare");
  return { open: (context: ReadContext) => new RequestBodies(large, context) };
}

/** The bodies of one request, to be closed when none of them is used. */
export class RequestBodies implements Disposable {
  readonly #large: Shares;
  readonly #context: ReadContext;
  #bytes = 0;
  #place: Promise<Release> | undefined;

  constructor(large: Shares, context: ReadContext) {
    this.#large = large;
    this.#context = context;
  }

  /** Reads a body to its end. Rejects with its errors and `signal.reason`. */
  async read(body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array[]> {
    const blocks: Uint8Array[] = [];
    let small: Uint8Array[] = [];
    let smallBytes = 0;
    const join = () => {
      if (smallBytes > 0) blocks.push(Buffer.concat(small, smallBytes));
      small = [];
      smallBytes = 0;
    };
    for await (const chunk of body) {
      this.#bytes += chunk.length;
      if (this.#bytes > maxSmallBytes) await untilAborted(this.#waitForPlace(), signal);
      if (chunk.length >= minBlockBytes) {
        join();
        blocks.push(chunk);
        continue;
      }
      small.push(chunk);
      smallBytes += chunk.length;
      if (smallBytes >= blockBytes) join();
    }
    join();
    return blocks;
  }

  /** Gives its place back. */
  [Symbol.dispose](): void {
    // Without a place there is nothing to give back.
    this.#place?.then(
      (release) => release(),
      () => {},
    );
  }

  #waitForPlace(): Promise<Release> {
    const { owner = "", signal } = this.#context;
    return (this.#place ??= this.#large.wait(owner, signal));
  }
}
