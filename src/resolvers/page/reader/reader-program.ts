import { readSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { endWithParent, yieldMemory } from "../../../system/child-process.ts";
import { lengthBytes, packOutcome, unpackJob } from "./wire.ts";
import { readBody } from "./read-body.ts";

/**
 * Program of a reader process: reads one body at a time. From standard input it gets the length of a job, the job, and
 * the body. To standard output it writes a byte once it has started, then of each outcome its length and the outcome. It
 * waits for input in system calls, without the event loop: it has nothing else to do.
 */
if (process.argv[2] !== "read") throw new Error("reader-program.ts is the program of a reader process");

async function main(): Promise<void> {
  // A heap with so low a limit may grow by a third only before V8 marks it again; nearly all that is new is garbage after each body.
  setFlagsFromString("--heap-growing-percent=100");
  endWithParent();
  yieldMemory();
  await writeBytes(Buffer.alloc(1));
  for (;;) {
    const length = readBytes(Buffer.alloc(lengthBytes)).readUInt32LE();
    const { job, bodyBytes } = unpackJob(readBytes(Buffer.alloc(length)));
    const body = readBytes(useMemory(bodyBytes));
    await writeBytes(packOutcome(job, () => readBody(job, body)));
  }
}

/** Is used again: memory of bodies, outside of V8's heap, would make it collect garbage more often. */
let memory = Buffer.alloc(0);

function useMemory(length: number): Buffer {
  if (memory.length < length) memory = Buffer.allocUnsafeSlow(length);
  return memory.subarray(0, length);
}

/** Fills the buffer. Ends the process if the service has ended. */
function readBytes(buffer: Buffer): Buffer {
  for (let at = 0; at < buffer.length;) {
    const count = readSync(0, buffer, { offset: at });
    if (count === 0) process.exit();
    at += count;
  }
  return buffer;
}

/** Resolves once the bytes are written. */
async function writeBytes(message: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // It fails if the service has ended; the next read notices that.
  process.stdout.write(message, () => resolve());
  await promise;
}

// Not awaited, and later: once the module is loaded, what was compiled is cached.
setImmediate(() => void main());
