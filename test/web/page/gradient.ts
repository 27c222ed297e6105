import { crc32, deflateSync } from "node:zlib";

type Colour = readonly [number, number, number];

/** Returns a PNG that fades from one colour at its top left to another at its bottom right. */
export function gradient(width: number, height: number, from: Colour, to: Colour): Buffer {
  const rows = Array.from({ length: height }, (_, y) => {
    const row = Buffer.alloc(1 + 3 * width);
    for (let x = 0; x < width; x++) {
      const share = (x / width + y / height) / 2;
      for (const [i, value] of from.entries()) {
        row[1 + 3 * x + i] = Math.round(value + share * ((to[i] ?? 0) - value));
      }
    }
    return row;
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits for each of three colours (ISO/IEC 15948 §11.2.2).
  header.set([8, 2], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1A\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat(rows))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(content), 4);
  return Buffer.concat([frame.subarray(0, 4), content, frame.subarray(4)]);
}
