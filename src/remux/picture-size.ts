import type { Cover } from "./additions.ts";

/** A picture of more pixels takes programs that show it over 250 MB of memory. */
const maxPixels = 64 * 1024 * 1024;

/** Whether the header of a picture tells its size, and programs can show one as large. */
export function isShowable({ mimeType, data }: Cover): boolean {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const size = mimeType === "image/png" ? pngSize(bytes) : jpegSize(bytes);
  return size !== undefined && size.width > 0 && size.height > 0 && size.width * size.height <= maxPixels;
}

interface PictureSize {
  width: number;
  height: number;
}

/** IHDR is the first chunk (W3C PNG §11.2.1). */
function pngSize(bytes: Buffer): PictureSize | undefined {
  return bytes.length < 24 ? undefined : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** The markers SOF0 to SOF15 but for three that are others (ITU-T T.81 table B.1). */
const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

function jpegSize(bytes: Buffer): PictureSize | undefined {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1]!;
    // Fill bytes may come before a marker.
    if (marker === 0xff) at += 1;
    else if (isFrameHeader(marker)) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
