import { type Additions, noAdditions } from "../../src/remux/additions.ts";
import { readMediaSync } from "../media/read-media.ts";

/** A picture of one green pixel. */
export const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

export const additions: Additions = {
  tags: {
    title: "Ein Film & «mehr» 🎬",
    artist: "Jemand",
    date: "2024-05-01",
    description: "Zeile eins\nZeile zwei",
    url: "https://example.com/watch?v=1",
    album: "Ein Album",
    albumArtist: "Alle",
    composer: "Niemand",
    genre: "Doku",
    track: "3/12",
    copyright: "© 2024",
    language: "de",
  },
  chapters: [
    { startS: 0, endS: 1.5, title: "Anfang" },
    { startS: 1.5, endS: 4, title: "Ende – 終" },
  ],
  cover: { mimeType: "image/png", data: png },
  subtitles: [
    {
      language: "de",
      name: "Deutsch",
      role: "subtitles",
      automatic: false,
      cues: [
        { startS: 0.5, endS: 1.25, text: "<i>Grüße</i> &amp; mehr", settings: "" },
        { startS: 1, endS: 2, text: "zweite", settings: "" },
        { startS: 2.5, endS: 3.1, text: "dritte\nin zwei Zeilen", settings: "align:start" },
      ],
    },
    {
      language: "pt-BR",
      name: "Placas",
      role: "forced",
      automatic: false,
      cues: [{ startS: 3, endS: 3.5, text: "Saída", settings: "" }],
    },
  ],
};

/** Those of the album, as ffprobe names them. */
export const albumTags = {
  album: "Ein Album",
  album_artist: "Alle",
  composer: "Niemand",
  genre: "Doku",
  track: "3/12",
  copyright: "© 2024",
};

/** What `remux` gets if there is nothing to add. */
export const nothingToAdd = {
  bytes: () => 0,
  saidBytes: () => 0,
  textTracks: () => 0,
  ready: async () => {},
  get: async () => noAdditions,
};

interface Probed {
  format: { duration: string; tags: Record<string, string> };
  streams: {
    codec_type: string;
    codec_name: string;
    disposition: Record<string, number>;
    tags?: Record<string, string>;
  }[];
  chapters: { start_time: string; end_time: string; tags: { title: string } }[];
}

export function probeAll(path: string): Probed {
  return everythingIn(path);
}

/** Asks for all that the tests look at, as each further run of ffprobe takes longer than that. */
function everythingIn(path: string): Probed & { packets: { codec_type: string; data_hash: string }[] } {
  const what = ["-show_format", "-show_streams", "-show_chapters", "-show_packets", "-show_data_hash", "md5"];
  return JSON.parse(readMediaSync("ffprobe", "-v", "error", ...what, "-of", "json", path));
}

/** Returns the cues of a subtitle track, as ffmpeg reads them, in SubRip. */
export function cuesOf(path: string, track: number): string {
  return readMediaSync(
    "ffmpeg",
    "-v",
    "error",
    "-copyts",
    "-i",
    path,
    "-map",
    `0:s:${track}`,
    "-f",
    "srt",
    "-",
  ).replaceAll("\r\n", "\n");
}

/** Returns the hashes of all packets of video and audio. */
export function packetHashes(path: string): string[] {
  const media = everythingIn(path).packets.filter(({ codec_type }) => codec_type === "video" || codec_type === "audio");
  return media.map(({ codec_type, data_hash }) => `${codec_type} ${data_hash}`).toSorted();
}

/** Returns what python3-mutagen of the system reads; undefined if it is not installed. */
export function mutagen(path: string): string | undefined {
  const program =
    "import mutagen, sys; f = mutagen.File(sys.argv[1]); print(dict(f.tags)); print([c.title for c in getattr(f, 'chapters', None) or []])";
  try {
    return readMediaSync("/usr/bin/python3", "-c", program, path);
  } catch (error) {
    if (String(error).includes("No module named")) return undefined;
    throw error;
  }
}
