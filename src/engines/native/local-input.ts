import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import {
  ADTS,
  CustomSource,
  FLAC,
  Input,
  MATROSKA,
  MP3,
  MP4,
  MPEG_TS,
  OGG,
  QTFF,
  WAVE,
  WEBM,
} from "mediabunny";

/** All containers that are one file; a playlist (HLS) could name other files of this machine. */
const formats = [MP4, QTFF, MATROSKA, WEBM, WAVE, OGG, FLAC, MP3, ADTS, MPEG_TS];

/** The file at `path` for mediabunny to read; its `dispose` closes it. */
export function openLocalInput(path: string): Input {
  const file = openSync(path, "r");
  const source = new CustomSource({
    getSize: () => fstatSync(file).size,
    read: (start, end) => {
      const bytes = new Uint8Array(end - start);
      const length = readSync(file, bytes, 0, bytes.length, start);
      return bytes.subarray(0, length);
    },
    dispose: () => closeSync(file),
    prefetchProfile: "fileSystem",
  });
  return new Input({ source, formats });
}
