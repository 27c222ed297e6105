import { ascii, box, fullBox, u16, u32, u64 } from "../../src/remux/mp4/boxes.ts";

/** An init section of a track of English text, 1000 ticks a second, which is presented from a media time on. */
export function textInit(
  codec: "wvtt" | "stpp",
  mediaTime = 0,
  vttHeader = "WEBVTT",
  { duration, size } = { duration: 0, size: 0 },
): Buffer {
  const entry =
    codec === "wvtt"
      ? box("wvtt", new Uint8Array(6), u16(1), box("vttC", ascii(vttHeader)))
      : box("stpp", new Uint8Array(6), u16(1), ascii("http://www.w3.org/ns/ttml\0\0\0"));
  const table = box("stbl", fullBox("stsd", 0, 0, u32(1), entry));
  const media = box(
    "mdia",
    fullBox("mdhd", 0, 0, u32(0, 0, 1000, 0), u16(0x15c7, 0)),
    fullBox("hdlr", 0, 0, u32(0), ascii("text"), u32(0, 0, 0), new Uint8Array(1)),
    box("minf", table),
  );
  const header = fullBox("mvhd", 0, 0, u32(0, 0, 1000, 0), new Uint8Array(80));
  const track = fullBox("tkhd", 0, 0, u32(0, 0, 1), new Uint8Array(68));
  const edits = box("edts", fullBox("elst", 0, 0, u32(1, 0, mediaTime, 0x10000)));
  const extension = box("mvex", fullBox("trex", 0, 0, u32(1, 1, duration, size, 0)));
  return Buffer.concat([
    box("ftyp", ascii("iso6"), u32(0)),
    box("moov", header, box("trak", track, edits, media), extension),
  ]);
}

/** A segment of samples, one after the other from `startMs` on; `null`: it does not state when. */
export function textSegment(startMs: number | null, samples: readonly { ms: number; data: Uint8Array }[]): Buffer {
  const fields = samples.flatMap(({ ms, data }) => [ms, data.length]);
  const moof = (offset: number) =>
    box(
      "moof",
      fullBox("mfhd", 0, 0, u32(1)),
      box(
        "traf",
        fullBox("tfhd", 0, 0x20000, u32(1)),
        ...(startMs === null ? [] : [fullBox("tfdt", 1, 0, u64(startMs))]),
        fullBox("trun", 0, 0x301, u32(samples.length, offset, ...fields)),
      ),
    );
  const { length } = moof(0);
  return Buffer.concat([moof(length + 8), box("mdat", ...samples.map(({ data }) => data))]);
}

/** A sample with cues of WebVTT; none: an empty one. */
export function vttSample(...texts: readonly string[]): Uint8Array {
  if (texts.length === 0) return box("vtte");
  return Buffer.concat(texts.map((text) => box("vttc", box("payl", Buffer.from(text)))));
}
