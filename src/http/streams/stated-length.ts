import { StreamBrokenError } from "../../files/media-stream.ts";

type Read = (into: Buffer) => Promise<number | null>;

/**
 * Returns a `read` of a stream that is said to have so many bytes. The last one comes only with the end, `null` of `read`: as the response
 * states its length, a client that has all bytes takes it for complete.
 *
 * @throws StreamBrokenError if it has more or fewer bytes
 */
export function withStatedLength(read: Read, total: number): Read {
  let left = total;
  let last: number | undefined;
  return async function readNext(into): Promise<number | null> {
    const count = await read(into);
    if (count === null) {
      if (left > 0) throw new StreamBrokenError(`the stream has ${total - left} bytes of ${total}`);
      if (last === undefined) return null;
      into.writeUInt8(last);
      last = undefined;
      return 1;
    }
    left -= count;
    if (left < 0) throw new StreamBrokenError(`the stream has more than ${total} bytes`);
    if (left > 0) return count;
    last = into.readUInt8(count - 1);
    return count === 1 ? readNext(into) : count - 1;
  };
}
