import { ascii, box, fullBox, u16, u32 } from "../../src/remux/mp4/boxes.ts";

/** An MP4 of ten samples in 4 KB, and what its tables say; given parts replace those that are true. */
export interface Tables {
  codec?: "avc1" | "sowt";
  /** Content of `stsz` after version and flags: size of all or 0, count, sizes. */
  sizes?: Uint8Array;
  durations?: Uint8Array;
  compositions?: Uint8Array;
  runs?: Uint8Array;
  chunks?: Uint8Array;
  /** Further boxes in `stbl`. */
  more?: Uint8Array[];
  /** Boxes after `moov`. */
  after?: Uint8Array[];
}

export const maxCount = 2 ** 32 - 1;

/** Builds the file: `ftyp`, 4 KB of `mdat`, `moov`. */
export function buildMp4(tables: Tables = {}): Buffer {
  const { codec = "avc1", more = [], after = [] } = tables;
  const stbl = box(
    "stbl",
    fullBox("stsd", 0, 0, u32(1), codec === "avc1" ? avc1 : sowt),
    fullBox("stts", 0, 0, tables.durations ?? u32(1, 10, 512)),
    ...(tables.compositions === undefined ? [] : [fullBox("ctts", 0, 0, tables.compositions)]),
    fullBox("stsc", 0, 0, tables.runs ?? u32(1, 1, 10, 1)),
    fullBox("stsz", 0, 0, tables.sizes ?? u32(4, 10)),
    fullBox("stco", 0, 0, tables.chunks ?? u32(1, 48)),
    ...more,
  );
  const handler = fullBox("hdlr", 0, 0, u32(0), ascii(codec === "avc1" ? "vide" : "soun"), u32(0, 0, 0));
  const mediaHeader = fullBox("mdhd", 0, 0, u32(0, 0, 44_100, 0, 0));
  const media = box("mdia", mediaHeader, handler, box("minf", stbl));
  const tkhd = fullBox("tkhd", 0, 7, u32(0, 0, 1, 0, 0), new Uint8Array(52), u32(640 << 16, 360 << 16));
  const mvhd = fullBox("mvhd", 0, 0, u32(0, 0, 1000, 0, 0x10000), new Uint8Array(76), u32(2));
  return Buffer.concat([
    box("ftyp", ascii("isom"), u32(512), ascii("isomiso2avc1mp41")),
    box("mdat", new Uint8Array(4096)),
    box("moov", mvhd, box("trak", tkhd, media)),
    ...after,
  ]);
}

/** Returns a fragment whose run states `count` samples and nothing about each. */
export function emptyRun(count: number): Uint8Array {
  const tfhd = fullBox("tfhd", 0, 0x20038, u32(1, 512, 1, 0));
  return box("moof", box("traf", tfhd, fullBox("trun", 0, 0, u32(count))));
}

const avcConfig = Uint8Array.from([
  1, 0x4d, 0x40, 0x1f, 0xff, 0xe1, 0, 4, 0x67, 0x4d, 0x40, 0x1f, 1, 0, 4, 0x68, 0xee, 0x3c, 0x80,
]);
const avc1 = box(
  "avc1",
  new Uint8Array(6),
  u16(1),
  new Uint8Array(16),
  u16(640, 360),
  new Uint8Array(50),
  box("avcC", avcConfig),
);
const sowt = box("sowt", new Uint8Array(6), u16(1), u32(0, 0), u16(1, 16, 0, 0), u32(44_100 << 16));
