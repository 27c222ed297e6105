import { isUpstreamError } from "../../model/errors.ts";
import { openFile } from "../open-file.ts";
import type { Block } from "./blocks.ts";
import { chosenBlocks, selectAll } from "./chosen-tracks.ts";
import { isLaced, readBytes } from "./copy.ts";
import { checkLace } from "./lacing.ts";

/**
 * Returns how many blocks of a Matroska or WebM file have a lace whose sizes do not fit (RFC 9559 §10.3), up to where the file
 * itself is damaged.
 * @throws the file system's own errors.
 */
export function countDamagedLaces(path: string): number {
  using file = openFile(path);
  let count = 0;
  unlessDamaged(() => {
    const source = selectAll(file.fd);
    for (const block of source === undefined ? [] : chosenBlocks(source)) {
      if (isLaced(block.flags) && !isRight(file.fd, block)) count += 1;
    }
  });
  return count;
}

function isRight(fd: number, block: Block): boolean {
  return (
    unlessDamaged(() => {
      checkLace(readBytes(fd, block), block.flags);
      return true;
    }) ?? false
  );
}

function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isUpstreamError(error)) return undefined;
    throw error;
  }
}
