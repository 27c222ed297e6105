const header = Buffer.from("1a45dfa39f4286810142f7810142f2810442f381084282847765626d4287810442858102", "hex");
const endlessSegment = Buffer.from("1853806701ffffffffffffff", "hex");

/** Builds an MKV whose Segments of unknown size contain one another. */
export function buildNestedMkv(depth: number): Buffer {
  return Buffer.concat([header, ...Array.from({ length: depth }, () => endlessSegment)]);
}
