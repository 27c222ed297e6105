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
import { checkNotEncrypted, readCodecDelay } from "./track-headers.ts";
import { checkSampleTables } from "../../../remux/mp4/read/check-tables.ts";
import { numbersInFile } from "../../../remux/mp4/read/number-source.ts";

/** All single-file containers; an HLS playlist could name other files of this machine. */
const formats = [MP4, QTFF, MATROSKA, WEBM, WAVE, OGG, FLAC, MP3, ADTS, MPEG_TS];

export interface LocalInput extends Disposable {
  input: Input;
  /** How much earlier than its time stamps the audio is presented, seconds. */
  codecDelayS: number;
  /** Stops all reads and closes the file; safe to call twice. */
  [Symbol.dispose](): void;
}

/**
 * Opens a file for mediabunny.
 *
 * @throws ServiceError `upstream_invalid` if it is an MP4 whose sample tables cannot be true: mediabunny
 * believes them; `drm_protected` if its media are encrypted.
 */
export function openLocalInput(path: string): LocalInput {
  const file = openSync(path, "r");
  let isClosed = false;
  const opened = (): number => {
    if (isClosed) throw new Error(`${path} is closed`);
    return file;
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
  using cleanup = new DisposableStack();
  cleanup.defer(() => {
    isClosed = true;
    closeSync(file);
  });
  checkSampleTables(numbersInFile(file));
  checkNotEncrypted(file);
  const codecDelayS = readCodecDelay(file);
  const input = new Input({ source, formats });
  cleanup.defer(() => input.dispose());
  const kept = cleanup.move();
  return { input, codecDelayS, [Symbol.dispose]: () => kept.dispose() };
}
