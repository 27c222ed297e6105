import { createCipheriv } from "node:crypto";
import { join, type Rendition } from "./rendition.ts";
import { type Resources, resource } from "./resources.ts";

/** Lines of a media playlist (RFC 8216 §4.3.3) that tell of one segment or of what comes before it. */
type Lines = string[];

/** Segments as files of a server, and the lines of a playlist that name them. */
export interface Laid {
  resources: Resources;
  lines: Lines;
}

/** A complete media playlist; without `isOver` one that may still grow. */
export function mediaPlaylist(lines: Lines, isOver = true): string {
  const head = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:1"];
  return [...head, ...lines, ...(isOver ? ["#EXT-X-ENDLIST"] : []), ""].join("\n");
}

/** A file for each segment: `folder/0.ts` … */
export function layFiles(folder: string, { init, pieces }: Rendition, ext: string): Laid {
  const resources: Resources = new Map();
  const lines: Lines = [];
  if (init !== null) {
    resources.set(`${folder}/init.mp4`, resource("video/mp4", init));
    lines.push(`#EXT-X-MAP:URI="${folder}/init.mp4"`);
  }
  for (const [i, { data, durationS, isJoin = false }] of pieces.entries()) {
    resources.set(`${folder}/${i}.${ext}`, resource(types[ext] ?? "video/mp4", data));
    if (isJoin) lines.push(discontinuity);
    lines.push(`#EXTINF:${durationS.toFixed(6)},`, `${folder}/${i}.${ext}`);
  }
  return { resources, lines };
}

/** One file for all segments, named by byte ranges; every other one leaves its offset out. */
export function layOneFile(path: string, rendition: Rendition): Laid {
  const { init, pieces } = rendition;
  const lines: Lines = [];
  let offset = init?.length ?? 0;
  if (init !== null) lines.push(`#EXT-X-MAP:URI="${path}",BYTERANGE="${init.length}@0"`);
  for (const [i, { data, durationS, isJoin = false }] of pieces.entries()) {
    if (isJoin) lines.push(discontinuity);
    const at = i % 2 === 0 ? `@${offset}` : "";
    lines.push(`#EXTINF:${durationS.toFixed(6)},`, `#EXT-X-BYTERANGE:${data.length}${at}`, path);
    offset += data.length;
  }
  return { resources: new Map([[path, resource("video/mp4", join(rendition))]]), lines };
}

/**
 * Segments under AES-128 (RFC 8216 §5.2), a new key every `rotation` segments. With `hasIv` the
 * playlist states the IV, else it is the segment's number.
 */
export function layEncrypted(
  folder: string,
  { init, pieces }: Rendition,
  { ext, hasIv, rotation }: { ext: string; hasIv: boolean; rotation: number },
): Laid {
  const plain = layFiles(folder, { init, pieces }, ext);
  const lines = plain.lines.slice(0, init === null ? 0 : 1);
  for (const [i, { data, durationS, isJoin = false }] of pieces.entries()) {
    if (isJoin) lines.push(discontinuity);
    const number = Math.floor(i / rotation);
    const key = Buffer.alloc(16, `key ${number} of the test`);
    const iv = Buffer.alloc(16);
    iv.writeUInt32BE(hasIv ? 0xc0ffee00 + number : i, 12);
    if (i % rotation === 0) {
      plain.resources.set(`${folder}/${number}.key`, resource("application/octet-stream", key));
      const stated = hasIv ? `,IV=0x${iv.toString("hex")}` : "";
      lines.push(`#EXT-X-KEY:METHOD=AES-128,URI="${folder}/${number}.key"${stated}`);
    }
    const cipher = createCipheriv("aes-128-cbc", key, iv);
    const body = Buffer.concat([cipher.update(data), cipher.final()]);
    plain.resources.set(`${folder}/${i}.${ext}`, resource("video/mp2t", body));
    lines.push(`#EXTINF:${durationS.toFixed(6)},`, `${folder}/${i}.${ext}`);
  }
  return { resources: plain.resources, lines };
}

const discontinuity = "#EXT-X-DISCONTINUITY";

export interface Variant {
  uri: string;
  bandwidth: number;
  averageBandwidth?: number;
  codecs: string;
  resolution?: string;
  /** Group of its sound. */
  audio?: string;
}

export interface AudioRendition {
  group: string;
  language: string;
  uri: string;
  isDefault: boolean;
}

/** A multivariant playlist (RFC 8216 §4.3.4). */
export function multivariant(variants: Variant[], audios: AudioRendition[] = []): string {
  const media = audios.map(
    ({ group, language, uri, isDefault }) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${language}",LANGUAGE="${language}",` +
      `DEFAULT=${isDefault ? "YES" : "NO"},AUTOSELECT=YES,URI="${uri}"`,
  );
  const streams = variants.flatMap(({ uri, codecs, resolution, audio, ...rates }) => [
    `#EXT-X-STREAM-INF:BANDWIDTH=${rates.bandwidth},CODECS="${codecs}"` +
      (rates.averageBandwidth === undefined ? "" : `,AVERAGE-BANDWIDTH=${rates.averageBandwidth}`) +
      (resolution === undefined ? "" : `,RESOLUTION=${resolution}`) +
      (audio === undefined ? "" : `,AUDIO="${audio}"`),
    uri,
  ]);
  return ["#EXTM3U", "#EXT-X-VERSION:7", ...media, ...streams, ""].join("\n");
}

const types: Readonly<Record<string, string>> = {
  ts: "video/mp2t",
  aac: "audio/aac",
  m4s: "video/mp4",
};
