import type { MediaFixture } from "../media-fixtures.ts";
import { readMedium } from "../rendition.ts";
import { resource } from "../resources.ts";

/** One file each, which is to arrive as it is. */
export function progressiveFixtures(): MediaFixture[] {
  return [
    whole("an MP4 with its index in front", "index-first.mp4", "video/mp4"),
    whole("an MP4 with its index at the end", "index-last.mp4", "video/mp4"),
    whole("a WebM of VP9 and Opus", "vp9-opus.webm", "video/webm"),
    whole("a WebM of VP8 and Vorbis", "vp8-vorbis.webm", "video/webm"),
    whole("a Matroska file", "h264-aac.mkv", "video/x-matroska"),
    whole("an M4A", "aac.m4a", "audio/mp4"),
    whole("an MP3", "tone.mp3", "audio/mpeg"),
    whole("an Ogg of Vorbis", "vorbis.ogg", "audio/ogg"),
  ];
}

function whole(name: string, file: string, type: string): MediaFixture {
  const data = readMedium(file);
  const ext = file.slice(file.lastIndexOf(".") + 1);
  return {
    name,
    entry: file,
    resources: new Map([[file, resource(type, data)]]),
    sources: [{ data, ext }],
    times: 1,
    ext,
  };
}
