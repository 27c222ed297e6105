import type { Cover } from "./additions.ts";

/** A picture of more pixels takes programs that show it over 250 MB of memory. */
const maxPixels = 64 * 1024 * 1024;

/** Whether the header of a picture states its size, programs can show one as large, and its end is there. */
export function isShowable({ mimeType, data }: Cover): boolean {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const size = mimeType === "image/png" ? pngSize(bytes) : jpegSize(bytes);
  return size !== undefined && size.width > 0 && size.height > 0 && size.width * size.height <= maxPixels;
}

interface PictureSize {
  width: number;
  height: number;
}

/** IHDR is the first chunk, IEND the last (W3C PNG §5.6). */
function pngSize(bytes: Buffer): PictureSize | undefined {
  return !bytes.includes("IEND", 24, "latin1")
    ? undefined
    : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** The markers SOF0 to SOF15 but for three that are others (ITU-T T.81 table B.1). */
const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** Follows the coded picture, whose own FF bytes are marked (ITU-T T.81 §B.1.1.2, §B.1.1.5); other data may come after it. */
const endOfImage = Buffer.from([0xff, 0xd9]);

function jpegSize(bytes: Buffer): PictureSize | undefined {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1]!;
    // Fill bytes may come before a marker.
    if (marker === 0xff) at += 1;
    else if (isFrameHeader(marker)) {
      if (!bytes.includes(endOfImage, at + 2 + bytes.readUInt16BE(at + 2))) return undefined;
      return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    } else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
