import { sniffMedium } from "../../../parsers/media-type.ts";
import { readFileStart } from "../../../remux/open-file.ts";
import { openLocalInput } from "./local-input.ts";
import { readAviCodecs, unreadKind } from "./unread-kind.ts";

const headBytes = 64 << 10;
const maxTracks = 16;

/** Returns containers and codecs of the files for a message: "FLV with Sorenson H.263 and MP3". */
export async function describeFiles(paths: readonly string[]): Promise<string> {
  const named = await Promise.all(paths.map((path) => describeFile(path)));
  return named.join(", together with ");
}

async function describeFile(path: string): Promise<string> {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  const kind = unreadKind(head);
  if (kind === "flv") return nameMedia("FLV", flvCodecs(head));
  if (kind === "avi") return nameMedia("AVI", aviCodecs(head));
  if (kind === "wmv") return "WMV (ASF)";
  if (kind === "mpg") return nameMedia("an MPEG program stream", programCodecs(head.toString("latin1")));
  try {
    using file = openLocalInput(path);
    const tracks = (await file.input.getTracks()).slice(0, maxTracks);
    const codecs = await Promise.all(
      tracks.map(async (track) => {
        const [known, id] = [await track.getCodec(), await track.getInternalCodecId()];
        return known ?? (typeof id === "string" ? printable(id) : "an unknown codec");
      }),
    );
    return nameMedia((await file.input.getFormat()).name, codecs);
  } catch {
    // Its codecs are not known; the error itself is the cause of the message's error.
    return sniffMedium(head)?.ext.toUpperCase() ?? "a file of an unknown container";
  }
}

function nameMedia(container: string, codecs: readonly string[]): string {
  const names = [...new Set(codecs)];
  return names.length === 0 ? container : `${container} with ${names.join(" and ")}`;
}

function namesByCode(table: string): ReadonlyMap<number, string> {
  const rows = table.split(", ").map((row) => row.split(": "));
  return new Map(rows.map(([code, name = ""]) => [Number(code), name]));
}

const flvVideo = namesByCode(
  "2: Sorenson H.263, 3: Screen Video, 4: VP6, 5: VP6 with alpha, 6: Screen Video 2, 7: H.264, 12: HEVC",
);
const flvAudio = namesByCode(
  "0: PCM, 1: ADPCM, 2: MP3, 3: PCM, 4: Nellymoser, 5: Nellymoser, 6: Nellymoser, 7: G.711, 8: G.711, 10: AAC, 11: Speex, 14: MP3",
);

/** Reads the codecs of the first tags (Adobe Flash Video File Format Specification 10.1, annex E); those of Enhanced RTMP have four characters. */
function flvCodecs(head: Buffer): string[] {
  let video: string | undefined;
  let audio: string | undefined;
  for (let at = 13; at + 12 <= head.length; at += 15 + head.readUIntBE(at + 1, 3)) {
    const type = head.readUInt8(at);
    const first = head.readUInt8(at + 11);
    const fourCc = printable(head.toString("latin1", at + 12, at + 16));
    if (type === 9) video ??= (first & 0x80) === 0 ? flvVideo.get(first & 15) : fourCc;
    if (type === 8) audio ??= first >> 4 === 9 ? fourCc : flvAudio.get(first >> 4);
  }
  return [video, audio].filter((name) => name !== undefined);
}

const waveFormats = namesByCode(
  "0x01: PCM, 0x02: ADPCM, 0x11: ADPCM, 0x50: MP2, 0x55: MP3, 0xff: AAC, 0x161: WMA, 0x2000: AC-3, 0x2001: DTS",
);

function aviCodecs(head: Buffer): string[] {
  const codecs = [...readAviCodecs(head).take(maxTracks)].filter((codec) => codec !== null);
  return codecs.map((codec) =>
    typeof codec === "string" ? printable(codec) : (waveFormats.get(codec) ?? `audio format 0x${codec.toString(16)}`),
  );
}

/** Reads which streams have packets (ISO/IEC 13818-1 table 2-22), or whether it is a bare video stream. */
function programCodecs(head: string): string[] {
  const codecs = [
    /\0\0\x01[\xe0-\xef\xb3]/.test(head) && "MPEG-1 or MPEG-2 video",
    /\0\0\x01[\xc0-\xdf]/.test(head) && "MPEG audio",
    /\0\0\x01\xbd.{5}(?:.{0,30})\x0b\x77/s.test(head) && "AC-3",
  ];
  return codecs.filter((name) => name !== false);
}

/** Returns a name of a codec, which comes from a file, as a message can have it. */
export function printable(name: string): string {
  return name.replaceAll(/[^\w./-]/g, "?").slice(0, 40);
}
