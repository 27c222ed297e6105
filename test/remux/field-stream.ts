import { type CodedPicture, createFieldMaker, type FieldCoding } from "./field-maker.ts";
import { createPacketMaker, videoPid } from "./ts-packet-maker.ts";

const fieldTicks = 1800;
export const frameTicks = 2 * fieldTicks;

/** How pictures get into PES packets: each in its own, without a time, or with the picture before. */
export type Packing = "timed" | "untimed" | "joined";

export interface SentPicture extends CodedPicture {
  packing?: Packing;
  at?: number;
}

/** The field `at` × 20 ms after the start. */
export const field = (at: number, more: Partial<SentPicture> = {}): SentPicture => {
  const frameNum = Math.floor(at / 2) % 16;
  const structure = at % 2 === 0 ? "top" : "bottom";
  return { structure, kind: at === 0 ? "idr" : "intra", frameNum, order: at, grey: 20 + at, at, ...more };
};

/** Returns a transport stream of these pictures. */
export function transport(pictures: readonly SentPicture[], coding: FieldCoding = {}): Buffer {
  const make = createFieldMaker(coding);
  const { tables, pes } = createPacketMaker();
  const payloads: { pts: number | null; bytes: Buffer }[] = [];
  for (const picture of pictures) {
    const { packing = "timed", at = 0 } = picture;
    const bytes = make(picture);
    const last = payloads.at(-1);
    if (packing === "joined" && last) last.bytes = Buffer.concat([last.bytes, bytes]);
    else payloads.push({ pts: packing === "untimed" ? null : 90_000 + at * fieldTicks, bytes });
  }
  const packets = payloads.map(({ pts, bytes }) => pes(videoPid, pts, bytes, bytes.length + (pts === null ? 3 : 8)));
  return Buffer.concat([tables([{ pid: videoPid, streamType: 0x1b }]), ...packets]);
}

/** Both fields of four frames. */
export const eightFields = Array.from({ length: 8 }, (_, at) => field(at));
