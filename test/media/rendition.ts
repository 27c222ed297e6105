import { readFileSync } from "node:fs";

/** A stretch of a rendition that a player can fetch by itself. */
export interface Piece {
  data: Buffer;
  durationS: number;
  /** Its times do not continue those before, and the manifest says so. */
  isJoin?: boolean;
}

/** One track, or one pair of tracks, cut into pieces. */
export interface Rendition {
  /** What a decoder needs before the first piece. */
  init: Buffer | null;
  pieces: Piece[];
}

/** A file that `make.sh` made. */
export function readMedium(name: string): Buffer {
  return readFileSync(new URL(`files/${name}`, import.meta.url));
}

/** A file that `make.sh` made with a playlist that tells where its pieces are. */
export function readRendition(name: string): Rendition {
  return parseRendition(readMedium(name), readMedium(`${name}.m3u8`).toString());
}

/** A file with a playlist of ffmpeg that tells where its pieces are. */
export function parseRendition(medium: Buffer, playlist: string): Rendition {
  const rendition: Rendition = { init: null, pieces: [] };
  let durationS = 0;
  for (const line of playlist.split("\n")) {
    durationS = Number(/^#EXTINF:([\d.]+)/.exec(line)?.[1] ?? durationS);
    const [, length, offset] = /BYTERANGE[:=]"?(\d+)@(\d+)/.exec(line)?.map(Number) ?? [];
    if (length === undefined || offset === undefined) continue;
    const data = medium.subarray(offset, offset + length);
    if (line.startsWith("#EXT-X-MAP")) rendition.init = data;
    else rendition.pieces.push({ data, durationS });
  }
  return rendition;
}

/** Its init section and its first `count` pieces in a row. */
export function join({ init, pieces }: Rendition, count = pieces.length): Buffer {
  const data = pieces.slice(0, count).map((piece) => piece.data);
  return Buffer.concat([...(init === null ? [] : [init]), ...data]);
}

/** A WebM file with one cluster (Matroska's element 1F 43 B6 75) a second. */
export function readWebmRendition(name: string): Rendition {
  return splitWebm(readMedium(name), 1);
}

/** The same of a file whose clusters last `durationS` each. */
export function splitWebm(medium: Buffer, durationS: number): Rendition {
  const cluster = Buffer.from("1f43b675", "hex");
  const starts: number[] = [];
  for (let at = medium.indexOf(cluster); at !== -1; at = medium.indexOf(cluster, at + 4)) {
    starts.push(at);
  }
  const pieces = starts.map((start, i) => ({
    data: medium.subarray(start, starts[i + 1]),
    durationS,
  }));
  return { init: medium.subarray(0, starts[0]), pieces };
}

/**
 * The ADTS stream `name` as packed audio (RFC 8216 §3.4): pieces of `frames` frames of 1,024 samples
 * at 48 kHz, each behind an ID3 tag with its time, which begins at `startS`.
 */
export function readPackedAudio(name: string, frames: number, startS: number): Rendition {
  const medium = readMedium(name);
  const pieces: Piece[] = [];
  let begin = 0;
  let count = 0;
  let before = 0;
  for (let at = 0; at < medium.length;) {
    at += ((medium[at + 3]! & 3) << 11) | (medium[at + 4]! << 3) | (medium[at + 5]! >> 5);
    count += 1;
    if (count < frames && at < medium.length) continue;
    const time = id3Time(startS + (before * 1024) / 48_000);
    const data = Buffer.concat([time, medium.subarray(begin, at)]);
    pieces.push({ data, durationS: (count * 1024) / 48_000 });
    before += count;
    count = 0;
    begin = at;
  }
  return { init: null, pieces };
}

function id3Time(seconds: number): Buffer {
  const owner = Buffer.from("com.apple.streaming.transportStreamTimestamp\0");
  const ticks = Buffer.alloc(8);
  ticks.writeBigUInt64BE(BigInt(Math.round(seconds * 90_000)) & 0x1_ffff_ffffn);
  const length = owner.length + ticks.length;
  const frame = Buffer.concat([Buffer.from("PRIV"), Buffer.from([0, 0, 0, length, 0, 0])]);
  const head = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, frame.length + length]);
  return Buffer.concat([head, frame, owner, ticks]);
}
