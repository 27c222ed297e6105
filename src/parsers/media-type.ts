type MediaKind = "video" | "audio" | "hls" | "dash" | "feed" | "pls" | "image" | "flash" | "page" | "unknown";

export interface MediaType {
  kind: MediaKind;
  /** File name extension without the dot; `null` if neither type nor path have one. */
  ext: string | null;
  /** In lower case, without parameters. */
  mime_type: string | null;
}

/**
 * Returns what a response is: by its `Content-Type`, or by the extension of `url`'s path if that is
 * absent or generic (octet-stream, plain text, XML). The query is ignored.
 */
export function mediaTypeOf(contentType: string | null, url: URL): MediaType {
  const sent = bareMediaType(contentType);
  const byPath = byExtension.get(extensionOf(url));
  if (sent === null || genericTypes.has(sent)) return byPath ?? { ...unknown, mime_type: null };
  const known = byMediaType.get(sent);
  if (known !== undefined) return { ...known, mime_type: sent };
  const family = sent.slice(0, sent.indexOf("/"));
  if (family !== "video" && family !== "audio" && family !== "image") return { ...unknown, mime_type: sent };
  return { kind: family, ext: byPath?.kind === family ? byPath.ext : null, mime_type: sent };
}

/** Whether its `Content-Type` or, without one, its URL says that it is a playlist of HLS or an MPD. */
export function isManifest(contentType: string | null, url: URL): boolean {
  const { kind } = mediaTypeOf(contentType, url);
  return kind === "hls" || kind === "dash";
}

/** Whether servers send this `Content-Type` also for files whose type they do not know. */
export function isVagueType(contentType: string | null): boolean {
  const sent = bareMediaType(contentType);
  return sent === null || genericTypes.has(sent) || byMediaType.get(sent)?.kind === "page";
}

/** Returns the extension of a media type (parameters ignored); `null` if none is known. */
export function extensionOfMediaType(mediaType: string | null): string | null {
  const bare = bareMediaType(mediaType);
  return bare === null ? null : (byMediaType.get(bare)?.ext ?? null);
}

/** Returns what a medium is by its first bytes, 512 or more if it has them; undefined for all else. */
export function sniffMedium(head: Uint8Array): KnownType | undefined {
  const start = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 512)).toString("latin1");
  return patterns.find(([pattern]) => pattern.test(start))?.[1];
}

/** Returns a media type (RFC 9110 §8.3.1) in lower case without parameters; `null` if it is invalid. */
export function bareMediaType(contentType: string | null): string | null {
  if (contentType === null) return null;
  const bare = contentType.slice(0, 200).split(/[;,]/, 1)[0]?.trim().toLowerCase() ?? "";
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(bare) ? bare : null;
}

/**
 * Extension, kind, media type and its other names, pattern of the first bytes in Latin-1 (of the MIME Sniffing Standard §6.2, and of other
 * media); of an extension, a type and what matches, the first row counts.
 */
const table = [
  [
    "mp4",
    "video",
    "video/mp4 application/mp4 video/mpeg4",
    /^[^]{4}(?:ftyp(?!M4[AB] |qt {2})|moov|moof|styp|wide|mdat|pnot)/,
  ],
  ["m4v", "video", "video/x-m4v video/m4v"],
  ["mov", "video", "video/quicktime", /^[^]{4}ftypqt {2}/],
  ["mkv", "video", "video/x-matroska video/matroska", /^\x1A\x45\xDF\xA3[^]{0,64}\x42\x82[^]{1,8}matroska/],
  ["webm", "video", "video/webm", /^\x1A\x45\xDF\xA3/],
  // The page of the video stream is the first or the second one.
  ["ogv", "video", "video/ogg", /^OggS\0[^]{20,500}(?:\x80theora|OVP80\x01)/],
  ["flv", "video", "video/x-flv video/flv", /^FLV\x01/],
  ["avi", "video", "video/x-msvideo video/avi video/msvideo", /^RIFF[^]{4}AVI /],
  ["wmv", "video", "video/x-ms-wmv", /^\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C/],
  // A pack header (ISO/IEC 13818-1 §2.5.3.3), or the sequence header of a bare stream.
  ["mpg", "video", "video/mpeg", /^\x00\x00\x01[\xBA\xB3]/],
  ["mpeg", "video", "video/mpeg"],
  ["3gp", "video", "video/3gpp video/3gp"],
  ["m4a", "audio", "audio/mp4 audio/x-m4a audio/m4a", /^[^]{4}ftypM4[AB] /],
  // Audiobooks.
  ["m4b", "audio", "audio/mp4 audio/x-m4b audio/m4b"],
  ["ogg", "audio", "audio/ogg application/ogg audio/vorbis", /^OggS\0/],
  ["oga", "audio", "audio/ogg"],
  ["opus", "audio", "audio/opus"],
  ["flac", "audio", "audio/flac audio/x-flac", /^fLaC/],
  ["wav", "audio", "audio/wav audio/x-wav audio/wave audio/vnd.wave", /^(?:RIFF|RF64)[^]{4}WAVE/],
  ["aiff", "audio", "audio/aiff audio/x-aiff", /^FORM[^]{4}AIF[FC]/],
  ["aif", "audio", "audio/aiff"],
  ["aifc", "audio", "audio/aiff"],
  ["au", "audio", "audio/basic", /^\.snd\0/],
  ["caf", "audio", "audio/x-caf", /^caff\0\x01/],
  ["w64", "audio", "audio/x-w64", /^riff\x2E\x91\xCF\x11[^]{16}wave/],
  ["webm", "audio", "audio/webm"],
  ["weba", "audio", "audio/webm"],
  ["3gp", "audio", "audio/3gpp"],
  // Packets and frames: their marks are the first bytes of other files by chance.
  ["ts", "video", "video/mp2t", /^(?:[^]{4})?G[^]{187}(?:[^]{4})?G[^]{187}(?:[^]{4})?G/],
  ["mp3", "audio", "audio/mpeg audio/mp3 audio/x-mpeg audio/mpeg3", /^(?:ID3|\xFF[\xE2-\xE7\xF2-\xF7\xFA-\xFF])/],
  ["mpga", "audio", "audio/mpeg"],
  ["aac", "audio", "audio/aac audio/aacp audio/x-aac", /^\xFF[\xF0\xF1\xF8\xF9]/],
  [
    "m3u8",
    "hls",
    "application/vnd.apple.mpegurl application/x-mpegurl application/mpegurl audio/mpegurl " +
      "audio/x-mpegurl video/x-mpegurl video/mpegurl vnd.apple/mpegurl",
  ],
  ["m3u", "hls", "audio/x-mpegurl"],
  ["mpd", "dash", "application/dash+xml video/vnd.mpeg.dash.mpd"],
  ["swf", "flash", "application/x-shockwave-flash application/vnd.adobe.flash.movie"],
  ["jpg", "image", "image/jpeg image/jpg image/pjpeg"],
  ["jpeg", "image", "image/jpeg"],
  ["png", "image", "image/png"],
  ["gif", "image", "image/gif"],
  ["webp", "image", "image/webp"],
  ["avif", "image", "image/avif"],
  ["svg", "image", "image/svg+xml"],
  ["html", "page", "text/html"],
  ["htm", "page", "text/html"],
  ["xhtml", "page", "application/xhtml+xml"],
  ["rss", "feed", "application/rss+xml"],
  ["atom", "feed", "application/atom+xml"],
  ["pls", "pls", "audio/x-scpls audio/scpls application/pls application/pls+xml"],
] as const satisfies readonly Row[];

type Row = readonly [ext: string, MediaKind, mediaTypes: string, start?: RegExp];
type KnownExt = (typeof table)[number][0];
type KnownType = MediaType & { ext: KnownExt; mime_type: string };

const rows = table.map(([ext, kind, names, start]: Row) => {
  const types = names.split(" ").map((mime_type) => ({ kind, ext, mime_type }) as KnownType);
  return { ext, type: types[0]!, types, start };
});

/**
 * A regular expression's source for the extensions of media and manifests, without the dot; not `ts`, which is usually a
 * segment's or a program's.
 */
export const mediaExtension: string = `(?:${[
  ...new Set(table.flatMap(([ext, kind]) => (isMediaKind(kind) && ext !== "ts" ? ext : []))),
].join("|")})`;

/** Whether it is a medium or a manifest. */
export function isMediaKind(kind: MediaKind): boolean {
  return kind === "video" || kind === "audio" || kind === "hls" || kind === "dash";
}

/** Types that servers send for files of an unknown type. */
const genericTypes: ReadonlySet<string> = new Set(
  (
    "application/octet-stream binary/octet-stream application/binary application/x-download application/force-download " +
    // What Debian's and Python's lists of types say of `.ts`: translations of Qt.
    "text/plain text/xml application/xml text/vnd.trolltech.linguist"
  ).split(" "),
);

const unknown = { kind: "unknown", ext: null } as const;

const byExtension: ReadonlyMap<string, KnownType> = new Map(
  rows.map(({ ext, type }) => [ext, type] as const).toReversed(),
);

const byMediaType: ReadonlyMap<string, KnownType> = new Map(
  rows.flatMap(({ types }) => types.map((type) => [type.mime_type, type] as const)).toReversed(),
);

/** Media types by extension; those of files that are made differ from what is usual, and pages do not link to Dolby's. */
const fileTypes = {
  ...(Object.fromEntries(byExtension.values().map(({ ext, mime_type }) => [ext, mime_type])) as Record<
    KnownExt,
    string
  >),
  ogg: "video/ogg",
  opus: "audio/ogg",
  ac3: "audio/ac3",
  eac3: "audio/eac3",
};

export type FileExt = keyof typeof fileTypes;

/** What a file is called and sent as. */
export type FileType = { ext: string; mime_type: string };

/** Of files that have audio alone. */
const audioFileTypes: Partial<Record<FileExt, FileType>> = {
  mp4: { ext: "m4a", mime_type: "audio/mp4" },
  mkv: { ext: "mka", mime_type: "audio/x-matroska" },
  webm: { ext: "webm", mime_type: "audio/webm" },
  ogg: { ext: "ogg", mime_type: "audio/ogg" },
};

/** Returns the type of a file that usually has this extension. */
export function fileType(ext: FileExt, hasVideo = true): FileType {
  return (hasVideo ? undefined : audioFileTypes[ext]) ?? { ext, mime_type: fileTypes[ext] };
}

const patterns = rows.flatMap(({ start, type }) => (start === undefined ? [] : [[start, type] as const]));

function extensionOf(url: URL): string {
  // Some servers' URLs of files end with a slash: `/1.mp4/`.
  const path = url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : url.pathname;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.includes(".") ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "";
}
