import {
  layNumbered,
  mpd,
  numberTemplate,
  rangeList,
  type Representation,
  timelineTemplate,
} from "../../media/dash.ts";
import { layEncrypted, layFiles, layOneFile, mediaPlaylist, multivariant } from "../../media/hls.ts";
import { join, parseRendition, type Rendition, splitWebm } from "../../media/rendition.ts";
import { dash, hls, merge, resource, type Resources } from "../../media/resources.ts";
import { type AudioCodec, framesPerSecond, seconds, type Sources, type VideoCodec } from "./sources.ts";

/** What a server has of a stream: one rendition with all its tracks, or one for each. */
export interface Part {
  kind: "video" | "audio" | "both";
  rendition: Rendition;
  ext: string;
}

/** A stream that is right, in pieces that can be laid out again after a change. */
export interface Stream {
  name: string;
  codecs: readonly (VideoCodec | AudioCodec)[];
  /** Seconds of a piece. */
  pieceS: number;
  /** One progressive file. */
  isFile: boolean;
  /** Seconds of a piece of separate audio; default: `pieceS`. */
  audioPieceS?: number;
  /** What is asked of the download. */
  options: { audioOnly?: boolean; embed?: "all" };
  make(sources: Sources): Promise<Part[]>;
  /** The same without one of its tracks; for streams that have both in one part. */
  makeWithout?(kind: "video" | "audio", sources: Sources): Promise<Part[]>;
  /** Lays out what of it the manifest lists. */
  lay(parts: readonly Part[]): { resources: Resources; entry: string };
}

type Codecs = readonly (VideoCodec | AudioCodec)[];
interface Kind {
  codecs: Codecs;
  gop: number;
  /** Of separate audio, in frames of the video; default: that of the video. */
  audioPiece?: number;
}

const videos = ["h264", "h264-b", "hevc"] as const;
const isVideo = (codec: string): boolean => ["h264", "h264-b", "hevc", "vp8", "vp9", "av1"].includes(codec);

/** Returns over 200 streams. */
export function listStreams(): Stream[] {
  const segmented = [...transportStreams(), ...fragments(), ...separate(), ...dashStreams(), ...webm()];
  return [...segmented, ...progressive(), ...audioOf(segmented)];
}

/** Every fourth stream with video and audio, of which only the audio is asked for. */
function audioOf(streams: readonly Stream[]): Stream[] {
  return streams
    .filter(({ codecs }) => codecs.length === 2)
    .filter((_, index) => index % 4 === 0)
    .map((stream) => ({ ...stream, name: `${stream.name}, its audio`, options: { audioOnly: true } }));
}

function* pairs(ofVideo: readonly (VideoCodec | null)[], ofAudio: readonly (AudioCodec | null)[]): Generator<Codecs> {
  for (const video of ofVideo) {
    for (const audio of ofAudio) {
      if (video !== null || audio !== null) yield [video, audio].filter((codec) => codec !== null);
    }
  }
}

function transportStreams(): Stream[] {
  const all = [...pairs([...videos, null], ["aac", "aac-44", "mp3", "ac3", "eac3", null])];
  const files = all.flatMap((codecs) =>
    [24, 12].map((gop) => muxed("TS", { codecs, gop }, "mpegts", layoutOf("files", "ts"))),
  );
  const others = all
    .slice(0, 10)
    .flatMap((codecs) =>
      (["one file", "AES-128"] as const).map((layout) =>
        muxed(`TS, ${layout},`, { codecs, gop: 24 }, "mpegts", layoutOf(layout, "ts")),
      ),
    );
  return [...files, ...others];
}

function fragments(): Stream[] {
  const all = [...pairs([...videos, "av1", null], ["aac", "mp3", "ac3", "opus", "flac", null])];
  const files = all.map((codecs) => muxed("fMP4", { codecs, gop: 24 }, "fmp4", layoutOf("files", "m4s")));
  const short = all
    .slice(0, 12)
    .map((codecs) => muxed("fMP4, one file,", { codecs, gop: 12 }, "fmp4", layoutOf("one file", "m4s")));
  const locked = [...pairs(["h264-b", "vp9"], ["aac", "eac3", "opus"])].map((codecs) =>
    muxed("fMP4, AES-128,", { codecs, gop: 24 }, "fmp4", layoutOf("AES-128", "m4s")),
  );
  const vp9 = [...pairs(["vp9"], ["aac", "opus", "flac", null])].map((codecs) =>
    muxed("fMP4", { codecs, gop: 24 }, "fmp4", layoutOf("files", "m4s")),
  );
  return [...files, ...short, ...locked, ...vp9];
}

function layoutOf(layout: "files" | "one file" | "AES-128", ext: string) {
  return ({ rendition }: Part) => {
    if (layout === "one file") return layOneFile(`media.${ext}`, rendition);
    return layout === "files"
      ? layFiles("s", rendition, ext)
      : layEncrypted("s", rendition, { ext, hasIv: true, rotation: 2 });
  };
}

/** HLS with all tracks in one playlist. */
function muxed(
  name: string,
  { codecs, gop }: Kind,
  type: "mpegts" | "fmp4",
  layout: ReturnType<typeof layoutOf>,
): Stream {
  const ext = type === "fmp4" ? "m4s" : "ts";
  const kind = codecs.length === 2 ? "both" : isVideo(codecs[0]!) ? "video" : "audio";
  const make = async (sources: Sources, wanted: Codecs): Promise<Part[]> => {
    const { medium, playlist } = await sources.segment(wanted, gop, type);
    return [{ kind, ext, rendition: parseRendition(medium, playlist) }];
  };
  const variant = { uri: "index.m3u8", bandwidth: 100_000, codecs: codecs.map(nameOf).join(",") };
  return {
    name: `HLS ${name} ${codecs.join("+")}, pieces of ${gop} frames`,
    codecs,
    pieceS: gop / framesPerSecond,
    isFile: false,
    options: {},
    make: (sources) => make(sources, codecs),
    ...(kind === "both" && {
      makeWithout: (left: string, sources: Sources) =>
        make(
          sources,
          codecs.filter((codec) => isVideo(codec) === (left === "audio")),
        ),
    }),
    lay([part]) {
      const { resources, lines } = layout(part!);
      const lists: Resources = new Map([
        ["index.m3u8", hls(mediaPlaylist(lines))],
        ["main.m3u8", hls(multivariant([variant]))],
      ]);
      return { resources: merge(resources, lists), entry: "main.m3u8" };
    },
  };
}

function separate(): Stream[] {
  const parts = [...pairs([...videos, "av1"], ["aac", "ac3", "opus", "flac"])].map((codecs) =>
    apart({ codecs, gop: 24 }, "fmp4"),
  );
  const packets = [...pairs(videos, ["aac", "mp3"])].map((codecs) => apart({ codecs, gop: 24 }, "mpegts"));
  const others = [...pairs(["h264", "hevc"], ["aac"])].flatMap((codecs) =>
    [10, 40].flatMap((audioPiece) =>
      (["fmp4", "mpegts"] as const).map((type) => apart({ codecs, gop: 24, audioPiece }, type)),
    ),
  );
  return [...parts, ...packets, ...others];
}

/** HLS with a playlist for each track. */
function apart(tracks: Kind, type: "mpegts" | "fmp4"): Stream {
  const { codecs, audioPiece } = tracks;
  const ext = type === "fmp4" ? "m4s" : "ts";
  const variant = { uri: "0.m3u8", bandwidth: 100_000, codecs: codecs.map(nameOf).join(","), resolution: "128x72" };
  const audios = [{ group: "a", language: "en", uri: "1.m3u8", isDefault: true }];
  return {
    ...common(
      tracks,
      `HLS ${type}, tracks apart,${audioPiece === undefined ? "" : ` pieces of audio of ${audioPiece} frames,`}`,
    ),
    ...(audioPiece !== undefined && { audioPieceS: audioPiece / framesPerSecond }),
    make: (sources) => makeApart(tracks, type, sources),
    lay(parts) {
      const laid = parts.map(({ rendition, kind }) => ({ kind, ...layFiles(kind, rendition, ext) }));
      const lists = laid.map(({ lines, kind }): [string, ReturnType<typeof hls>] => [
        kind === "video" ? "0.m3u8" : "1.m3u8",
        hls(mediaPlaylist(lines)),
      ]);
      const hasAudio = laid.some(({ kind }) => kind === "audio");
      const main = hls(multivariant([{ ...variant, ...(hasAudio && { audio: "a" }) }], hasAudio ? audios : []));
      return {
        resources: merge(...laid.map(({ resources }) => resources), new Map([...lists, ["main.m3u8", main]])),
        entry: "main.m3u8",
      };
    },
  };
}

const common = ({ codecs, gop }: Kind, name: string) => ({
  name: `${name} ${codecs.join("+")}`,
  codecs,
  pieceS: gop / framesPerSecond,
  isFile: false,
  options: {},
});

async function makeApart(
  { codecs, gop, audioPiece = gop }: Kind,
  type: "mpegts" | "fmp4",
  sources: Sources,
): Promise<Part[]> {
  const ext = type === "fmp4" ? "m4s" : "ts";
  return Promise.all(
    codecs.map(async (codec) => {
      const { medium, playlist } = await sources.segment([codec], isVideo(codec) ? gop : audioPiece, type);
      return {
        kind: isVideo(codec) ? ("video" as const) : ("audio" as const),
        ext,
        rendition: parseRendition(medium, playlist),
      };
    }),
  );
}

type Addressing = (part: Part) => string;

function dashStreams(): Stream[] {
  const all = [...pairs([...videos, "av1"], ["aac", "ac3", "opus", "flac"])];
  const timeline: Addressing = ({ rendition }) => timelineTemplate("m4s", rendition, 48_000, 1);
  const number: Addressing = () => numberTemplate("m4s", 25, 24);
  const list: Addressing = ({ kind, rendition }) => rangeList(`${kind}.m4s`, rendition);
  return [
    ...all.map((codecs) => dashOf({ codecs, gop: 24 }, "timeline", timeline)),
    ...all.slice(0, 8).map((codecs) => dashOf({ codecs, gop: 24 }, "numbers", number)),
    ...all.slice(0, 8).map((codecs) => dashOf({ codecs, gop: 24 }, "ranges", list)),
  ];
}

function dashOf(kind: Kind, name: string, addressing: Addressing): Stream {
  const { codecs } = kind;
  return {
    ...common(kind, `DASH, ${name},`),
    make: (sources) => makeApart(kind, "fmp4", sources),
    lay: (parts) => layDash(parts, codecs, addressing),
  };
}

function layDash(parts: readonly Part[], codecs: Codecs, addressing: Addressing) {
  const sets = parts.map((part, index): Representation => {
    const { kind, ext } = part;
    const codec = codecs.find((each) => isVideo(each) === (kind === "video"))!;
    const mimeType = `${kind}/${ext === "webm" ? "webm" : "mp4"}`;
    return {
      id: kind,
      mimeType,
      codecs: nameOf(codec),
      ...(kind === "video" && { size: { width: 128, height: 72 } }),
      addressing: addressing(part).replaceAll("$RepresentationID$", `${index}`),
    };
  });
  const laid = parts.map((part, index) =>
    merge(
      layNumbered(`${index}`, part.rendition, part.ext),
      new Map([[`${part.kind}.m4s`, resource("video/mp4", join(part.rendition))]]),
    ),
  );
  const listedS = Math.max(
    ...parts.map(({ rendition }) => rendition.pieces.reduce((sum, { durationS }) => sum + durationS, 0)),
  );
  const manifest = dash(mpd([sets], Math.round(listedS * 1000) / 1000));
  return { resources: merge(...laid, new Map([["main.mpd", manifest]])), entry: "main.mpd" };
}

function webm(): Stream[] {
  return [...pairs(["vp8", "vp9"], ["opus", "vorbis"])].map((codecs) => ({
    ...common({ codecs, gop: 25 }, "DASH, WebM,"),
    make: async (sources) =>
      Promise.all(
        codecs.map(async (codec) => {
          const medium = await sources.mux([codec], 25, "-cluster_time_limit 1000 -dash 1", "webm");
          return {
            kind: isVideo(codec) ? ("video" as const) : ("audio" as const),
            ext: "webm",
            rendition: withoutRest(splitWebm(medium, 1)),
          };
        }),
      ),
    lay: (parts) => layDash(parts, codecs, (part) => timelineTemplate("webm", part.rendition, 1, 1)),
  }));
}

/** Joins the last cluster of audio, which has what is left of its last packet, with the one before. */
function withoutRest({ init, pieces }: Rendition): Rendition {
  const last = pieces[webmPieces - 1]!;
  const data = Buffer.concat(pieces.slice(webmPieces - 1).map((piece) => piece.data));
  return { init, pieces: [...pieces.slice(0, webmPieces - 1), { ...last, data }] };
}

/** Seconds of video. */
const webmPieces = 3;

/** One file each, in the pieces that its container has, and what is asked of it. */
function progressive(): Stream[] {
  const kinds: [Codecs, string, string][] = [
    [["h264-b", "aac"], "mp4", "-movflags +faststart"],
    [["hevc", "ac3"], "mp4", ""],
    [["h264", "aac"], "mp4", "-movflags +frag_keyframe+empty_moov"],
    [["h264-b", "mp3"], "mp4", "-movflags +frag_keyframe+empty_moov+default_base_moof"],
    [["av1", "opus"], "mp4", "-movflags +faststart"],
    [["h264", "aac"], "mov", ""],
    [["h264-b", "aac"], "mkv", ""],
    [["h264", "mp3"], "mkv", ""],
    [["hevc", "flac"], "mkv", "-cluster_time_limit 500"],
    [["vp9", "opus"], "webm", ""],
    [["vp8", "vorbis"], "webm", ""],
    [["h264", "aac"], "ts", ""],
    [["aac"], "m4a", ""],
    [["opus"], "mka", ""],
    [["opus"], "webm", ""],
    [["mp3"], "mp3", ""],
    [["mp3"], "mp3", "-write_xing 0"],
    [["flac"], "flac", ""],
    [["vorbis"], "ogg", "-page_duration 200000"],
    [["opus"], "opus", "-page_duration 200000"],
    [["aac"], "aac", "-f adts"],
    [["ac3"], "ac3", ""],
    [["pcm"], "wav", ""],
    [["pcm"], "mka", ""],
  ];
  return kinds.flatMap(([codecs, ext, args]) => {
    const modes: Stream["options"][] = [
      {},
      ...(embeddable.test(`${ext} ${args}`) ? [{ embed: "all" as const }] : []),
      ...(codecs.length > 1 ? [{ audioOnly: true }] : []),
    ];
    return modes.map((options): Stream => ({
      name: `${ext} of ${codecs.join("+")} ${args} ${JSON.stringify(options)}`,
      codecs,
      isFile: true,
      pieceS: seconds,
      options,
      make: async (sources) => {
        const medium = await sources.mux(codecs, 25, args, ext);
        return [{ kind: "both", ext, rendition: split(medium) }];
      },
      lay: ([part]) => ({
        resources: new Map([[`file.${ext}`, resource("application/octet-stream", join(part!.rendition))]]),
        entry: `file.${ext}`,
      }),
    }));
  });
}

/** What can have tags although it is kept as published. */
const embeddable = /^(?!.*frag)(?:mp4|m4a|mov|mkv|mka|webm|mp3|flac|ogg|opus) /;

/** Where the parts of a file begin: fragments, clusters, pages, or a tenth of it. */
function split(medium: Buffer): Rendition {
  const found = [...medium.toString("latin1").matchAll(/....moof|\x1f\x43\xb6\x75|OggS/gs)].map(({ index }) => index);
  const tenths = Array.from({ length: 9 }, (_, index) => Math.floor(((index + 1) * medium.length) / 10));
  const starts = found.length > 1 ? found : tenths;
  const pieces = starts.map((start, index) => ({ data: medium.subarray(start, starts[index + 1]), durationS: 0 }));
  return { init: medium.subarray(0, starts[0]), pieces };
}

function nameOf(codec: VideoCodec | AudioCodec): string {
  return codecNames[codec] ?? codec;
}

const codecNames: Readonly<Record<string, string>> = {
  h264: "avc1.64000c",
  "h264-b": "avc1.64000c",
  hevc: "hvc1.1.6.L30.B0",
  av1: "av01.0.00M.08",
  vp9: "vp09.00.10.08",
  aac: "mp4a.40.2",
  "aac-44": "mp4a.40.2",
  mp3: "mp4a.40.34",
  ac3: "ac-3",
  eac3: "ec-3",
  flac: "fLaC",
  opus: "opus",
};
