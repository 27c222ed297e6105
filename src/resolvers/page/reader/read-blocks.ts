/** Shorter chunks are joined to blocks: one of a byte takes a hundred, and may keep a buffer of 16 KiB. */
const minBlockBytes = 8 * 1024;
const blockBytes = 64 * 1024;

/** Reads a body to its end. Rejects with its errors. */
export async function readBlocks(body: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const blocks: Uint8Array[] = [];
  let small: Uint8Array[] = [];
  let smallBytes = 0;
  const join = () => {
    if (smallBytes > 0) blocks.push(Buffer.concat(small, smallBytes));
    small = [];
    smallBytes = 0;
  };
  for await (const chunk of body) {
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
