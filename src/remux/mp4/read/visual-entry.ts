import { typeAt, viewOf } from "../boxes.ts";

export interface PixelSize {
  width: number;
  height: number;
}

const fieldsEnd = 86;

/** Returns the size in a visual sample entry (ISO/IEC 14496-12 §12.1.3); undefined if it states none. */
export function readCodedSize(sampleEntry: Uint8Array): PixelSize | undefined {
  if (sampleEntry.length < 36) return undefined;
  const view = viewOf(sampleEntry);
  return { width: view.getUint16(32), height: view.getUint16(34) };
}

/** Like `readCodedSize`, but the width is that of square pixels (`pasp`, §12.1.4). */
export function readDisplaySize(sampleEntry: Uint8Array): PixelSize | undefined {
  const size = readCodedSize(sampleEntry);
  if (size === undefined || size.width === 0 || size.height === 0) return undefined;
  const [across, down] = readPixelAspect(sampleEntry);
  return { width: Math.round((size.width * across) / down), height: size.height };
}

function readPixelAspect(sampleEntry: Uint8Array): [number, number] {
  const view = viewOf(sampleEntry);
  // What follows the fields need not be boxes: QuickTime ends an entry with four zeros.
  for (let at = fieldsEnd; at + 16 <= sampleEntry.length;) {
    const size = view.getUint32(at);
    if (size < 8 || at + size > sampleEntry.length) break;
    if (typeAt(view, at + 4) === "pasp" && size >= 16) {
      const [across, down] = [view.getUint32(at + 8), view.getUint32(at + 12)];
      return across > 0 && down > 0 ? [across, down] : [1, 1];
    }
    at += size;
  }
  return [1, 1];
}
