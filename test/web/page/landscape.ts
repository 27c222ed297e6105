import { crc32, deflateSync } from "node:zlib";

type Colour = readonly [number, number, number];

const [width, height] = [320, 180];

/** Returns a PNG of 320 × 180 pixels: a sun over hills, under a sky that fades to the ground. */
export function landscape(above: Colour, below: Colour, hills: Colour): Buffer {
  const rows = Array.from({ length: height }, (_, y) => {
    const row = Buffer.alloc(1 + 3 * width);
    for (let x = 0; x < width; x++) row.set(colourAt(x, y), 1 + 3 * x);
    return row;
  });

  function colourAt(x: number, y: number): number[] {
    const ridge = 125 + 18 * Math.sin(x / 38 + above[0]) + 9 * Math.sin(x / 17 + below[1]);
    if (y > ridge) return [...hills];
    const isSun = Math.hypot(x - 80 - (hills[1] % 160), y - 62) < 22;
    return above.map((value, i) => {
      const sky = Math.round(value + (y / ridge) * ((below[i] ?? 0) - value));
      return isSun ? Math.min(255, sky + 50) : sky;
    });
  }

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
