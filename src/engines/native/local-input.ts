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

/** All single-file containers; an HLS playlist could name other files of this machine. */
const formats = [MP4, QTFF, MATROSKA, WEBM, WAVE, OGG, FLAC, MP3, ADTS, MPEG_TS];

export interface LocalInput extends Disposable {
  input: Input;
  /** Stops all reads and closes the file; safe to call twice. */
  [Symbol.dispose](): void;
}

/** Opens a file for mediabunny, at the first read. */
export function openLocalInput(path: string): LocalInput {
  let file: number | undefined;
  let isClosed = false;
  const opened = (): number => {
    if (isClosed) throw new Error(`${path} is closed`);
    return (file ??= openSync(path, "r"));
  };
  const source = new CustomSource({
    getSize: () => fstatSync(opened()).size,
    read: (start, end) => {
      const bytes = new Uint8Array(end - start);
      const length = readSync(opened(), bytes, 0, bytes.length, start);
      return bytes.subarray(0, length);
    },
    prefetchProfile: "fileSystem",
  });
  const input = new Input({ source, formats });
  return {
    input,
    [Symbol.dispose]() {
      // mediabunny does not call the source's `dispose` if the input is disposed before its first read.
      input.dispose();
      if (isClosed) return;
      isClosed = true;
      if (file !== undefined) closeSync(file);
    },
  };
}
