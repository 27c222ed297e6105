import { ServiceError } from "../../model/errors.ts";
import type { AudioChoice, TrackSlot } from "../audio-choice.ts";
import { iso639ToBcp47 } from "../language.ts";
import type { FoundTracks, TrackKind, UnreadSubtitles } from "../samples.ts";
import type { ProgramStream } from "./tables.ts";

type TsCodec = "avc" | "hevc" | "adts" | "mpeg-audio" | "dolby";

export interface ChosenStream extends TrackSlot {
  pid: number;
  kind: TrackKind;
  codec: TsCodec;
  /** BCP 47; `null`: unknown. */
  language: string | null;
}

/** Type of a stream; `codec` is a `TsCodec`, or why the stream cannot be read. */
interface StreamType {
  kind: TrackKind;
  codec: TsCodec | "encrypted" | "unsupported";
  name: string;
}

const tags = {
  registration: 0x05,
  language: 0x0a,
  teletext: 0x56,
  subtitling: 0x59,
  ac3: 0x6a,
  eac3: 0x7a,
  dts: 0x7b,
  extension: 0x7f,
} as const;
/** Of the extension descriptor: its first byte (ETSI EN 300 468 table 109). */
const audioExtensions = new Map([
  [0x0e, "DTS-HD"],
  [0x15, "AC-4"],
  [0x21, "DTS-UHD"],
]);

/** Of the supplementary audio descriptor: its first byte. */
const supplementary = 0x06;

/** Of metadata in PES packets. */
const metadataType = 0x15;

/** By stream_type (ISO/IEC 13818-1 table 2-34, ATSC A/53-3, HLS Sample Encryption). */
const byType = new Map<number, StreamType>([
  [0x01, { kind: "video", codec: "unsupported", name: "MPEG-1 video" }],
  [0x02, { kind: "video", codec: "unsupported", name: "MPEG-2 video" }],
  [0x03, { kind: "audio", codec: "mpeg-audio", name: "MPEG audio" }],
  [0x04, { kind: "audio", codec: "mpeg-audio", name: "MPEG audio" }],
  [0x0f, { kind: "audio", codec: "adts", name: "AAC" }],
  [0x10, { kind: "video", codec: "unsupported", name: "MPEG-4 Visual" }],
  [0x11, { kind: "audio", codec: "unsupported", name: "AAC in LATM" }],
  [0x1b, { kind: "video", codec: "avc", name: "H.264" }],
  [0x1c, { kind: "audio", codec: "unsupported", name: "MPEG-4 audio without framing" }],
  [0x21, { kind: "video", codec: "unsupported", name: "JPEG 2000" }],
  [0x24, { kind: "video", codec: "hevc", name: "HEVC" }],
  [0x2d, { kind: "audio", codec: "unsupported", name: "MPEG-H audio" }],
  [0x33, { kind: "video", codec: "unsupported", name: "VVC" }],
  [0x42, { kind: "video", codec: "unsupported", name: "AVS" }],
  [0x81, { kind: "audio", codec: "dolby", name: "AC-3" }],
  [0x82, { kind: "audio", codec: "unsupported", name: "DTS" }],
  [0x83, { kind: "audio", codec: "unsupported", name: "TrueHD" }],
  [0x85, { kind: "audio", codec: "unsupported", name: "DTS-HD" }],
  [0x87, { kind: "audio", codec: "dolby", name: "E-AC-3" }],
  [0xc1, { kind: "audio", codec: "encrypted", name: "AC-3" }],
  [0xc2, { kind: "audio", codec: "encrypted", name: "E-AC-3" }],
  [0xcf, { kind: "audio", codec: "encrypted", name: "AAC" }],
  [0xdb, { kind: "video", codec: "encrypted", name: "H.264" }],
  [0xea, { kind: "video", codec: "unsupported", name: "VC-1" }],
]);

/** By format_identifier of the registration descriptor, for private stream types. */
const byRegistration = new Map<string, StreamType>([
  ["HEVC", { kind: "video", codec: "hevc", name: "HEVC" }],
  ["AC-3", { kind: "audio", codec: "dolby", name: "AC-3" }],
  ["EAC3", { kind: "audio", codec: "dolby", name: "E-AC-3" }],
  ["Opus", { kind: "audio", codec: "unsupported", name: "Opus" }],
  ["BSSD", { kind: "audio", codec: "unsupported", name: "PCM" }],
  ["DTS1", { kind: "audio", codec: "unsupported", name: "DTS" }],
  ["DTS2", { kind: "audio", codec: "unsupported", name: "DTS" }],
  ["DTS3", { kind: "audio", codec: "unsupported", name: "DTS" }],
  ["AV01", { kind: "video", codec: "unsupported", name: "AV1" }],
  ["VC-1", { kind: "video", codec: "unsupported", name: "VC-1" }],
  ["drac", { kind: "video", codec: "unsupported", name: "Dirac" }],
]);

/** Of those that are registered as HDMV, as on Blu-ray discs; the others are as elsewhere. */
const byBluRayType = new Map<number, StreamType>([
  [0x80, { kind: "audio", codec: "unsupported", name: "PCM" }],
  [0x84, { kind: "audio", codec: "dolby", name: "E-AC-3" }],
  [0x86, { kind: "audio", codec: "unsupported", name: "DTS-HD" }],
  [0xa1, { kind: "audio", codec: "dolby", name: "E-AC-3" }],
  [0xa2, { kind: "audio", codec: "unsupported", name: "DTS" }],
]);

/** Of audio_type in the language descriptor (ISO/IEC 13818-1 table 2-60): clean effects, and commentary for the visually impaired. */
const secondaryTypes: ReadonlySet<number | undefined> = new Set([1, 3]);

/** Whether audio is not the programme as such: players take it if their user chooses it (also ETSI EN 300 468 §6.4.11). */
function isSecondary({ descriptors }: ProgramStream): boolean {
  const [extension, classes = 0] = descriptors.get(tags.extension) ?? [];
  const isDescription = extension === supplementary && ((classes >> 2) & 0x1f) === 1;
  return isDescription || secondaryTypes.has(descriptors.get(tags.language)?.[3]);
}

/**
 * Returns the first readable stream of each kind in `kinds`, and of audio the chosen ones: the programme is before its descriptions. A kind that the
 * program does not have has none.
 * @throws ServiceError `drm_protected` or `format_unavailable` if it has streams of a kind, but none is readable.
 */
export function chooseStreams(
  program: readonly ProgramStream[],
  kinds: readonly TrackKind[],
  audio: AudioChoice,
): ChosenStream[] {
  return kinds.flatMap((kind) => {
    const candidates = program
      .map((stream) => ({ ...stream, type: typeOf(stream) }))
      .filter(({ type }) => type?.kind === kind);
    const inOrder =
      kind === "audio" ? candidates.toSorted((a, b) => Number(isSecondary(a)) - Number(isSecondary(b))) : candidates;
    const readable = inOrder.flatMap(({ pid, type, descriptors }) => {
      const codec = type?.codec ?? "unsupported";
      if (codec === "unsupported" || codec === "encrypted") return [];
      return [{ pid, kind, codec, language: readLanguage(descriptors.get(tags.language)) }];
    });
    const [refused] = candidates;
    if (readable.length === 0 && refused?.type) throw unreadableError(refused.type, refused.streamType);
    if (kind === "video") return readable.slice(0, 1).map((stream) => ({ ...stream, slot: kind, place: 0 }));
    const chosen = audio.choose(readable.map(({ language }) => language));
    return chosen.map(({ index, ...slot }) => ({ ...readable[index]!, ...slot }));
  });
}

/** Returns the kinds of the streams. */
export const kindsIn = (program: readonly ProgramStream[]): TrackKind[] =>
  program.flatMap((stream) => typeOf(stream)?.kind ?? []);

/** Returns the PID of the first stream with video. */
export const findVideo = (program: readonly ProgramStream[]): number | undefined =>
  program.find((stream) => typeOf(stream)?.kind === "video")?.pid;

/** Returns the PIDs of streams of which the program does not say what they are: subtitles and metadata are none. */
export const findUnknown = (program: readonly ProgramStream[]): number[] =>
  program.filter((stream) => typeOf(stream) === null && !isText(stream)).map(({ pid }) => pid);

const isText = ({ streamType, descriptors }: ProgramStream): boolean =>
  streamType === metadataType || descriptors.has(tags.subtitling) || descriptors.has(tags.teletext);

/** Returns how many streams of a program are not among the chosen ones, of the kinds that these have. */
export function countLeft(program: readonly ProgramStream[], chosen: readonly ChosenStream[]): FoundTracks["left"] {
  const types = program.map((stream) => typeOf(stream)).filter((type) => type !== null);
  const count = (kind: TrackKind): number => {
    const read = chosen.filter((stream) => stream.kind === kind).length;
    return read === 0 ? 0 : types.filter((type) => type.kind === kind).length - read;
  };
  return { video: count("video"), audio: count("audio") };
}

/** Of an entry of the teletext descriptor: pages of subtitles, and those for deaf viewers (ETSI EN 300 468 §6.2.43). */
const subtitlePages: ReadonlySet<number> = new Set([2, 5]);

/** Returns the subtitles of a program, which are pictures (§6.2.41) or pages of teletext. */
export function listSubtitles(program: readonly ProgramStream[]): UnreadSubtitles[] {
  return program.flatMap(({ descriptors }) => {
    const pictures = entriesOf(descriptors.get(tags.subtitling), 8);
    const pages = entriesOf(descriptors.get(tags.teletext), 5).filter((entry) => subtitlePages.has(entry[3]! >> 3));
    return [
      ...pictures.map((entry) => ({ language: readLanguage(entry), codec: "DVB pictures" })),
      ...pages.map((entry) => ({ language: readLanguage(entry), codec: "teletext" })),
    ];
  });
}

function entriesOf(descriptor: Uint8Array = new Uint8Array(), length: number): Uint8Array[] {
  const count = Math.floor(descriptor.length / length);
  return Array.from({ length: count }, (_, i) => descriptor.subarray(i * length, (i + 1) * length));
}

function typeOf({ streamType, descriptors }: ProgramStream): StreamType | null {
  const known = byType.get(streamType);
  if (known) return known;
  const isPrivate = streamType === 0x06 || streamType >= 0x80;
  if (!isPrivate) return null;
  const identifier = Buffer.from(descriptors.get(tags.registration) ?? []).toString("latin1", 0, 4);
  const registered = identifier === "HDMV" ? byBluRayType.get(streamType) : byRegistration.get(identifier);
  if (registered) return registered;
  if (descriptors.has(tags.ac3)) return { kind: "audio", codec: "dolby", name: "AC-3" };
  if (descriptors.has(tags.eac3)) return { kind: "audio", codec: "dolby", name: "E-AC-3" };
  if (descriptors.has(tags.dts)) return { kind: "audio", codec: "unsupported", name: "DTS" };
  const extension = audioExtensions.get(descriptors.get(tags.extension)?.[0] ?? 0);
  return extension === undefined ? null : { kind: "audio", codec: "unsupported", name: extension };
}

function unreadableError({ codec, kind, name }: StreamType, streamType: number): ServiceError {
  const number = `stream type 0x${streamType.toString(16).padStart(2, "0")}`;
  return codec === "encrypted"
    ? new ServiceError("drm_protected", `the ${kind} of the stream is encrypted (${name}, ${number})`)
    : new ServiceError("format_unavailable", `MPEG-TS with ${name} (${number}) cannot be put into MP4`);
}

function readLanguage(descriptor: Uint8Array | undefined): string | null {
  return iso639ToBcp47(Buffer.from(descriptor?.subarray(0, 3) ?? []).toString("latin1"));
}
