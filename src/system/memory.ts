import { totalmem } from "node:os";

/** Memory of the machine, or of the container if that is less, bytes. */
export const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity);

/** With less than 1 GiB, bounds are lower: the processes of the service would exceed the memory together. */
export const isMemorySmall = memoryBytes < 2 ** 30;
