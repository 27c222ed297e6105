import { closeSync, fstatSync, openSync } from "node:fs";
import { boxesIn, damaged, viewOf } from "../boxes.ts";
import { fragmentSamples } from "./fragmenter.ts";
import { readInit } from "./init.ts";
import { createBudget } from "./trun.ts";
import { readTables } from "./sample-tables.ts";
import { diskError } from "../../../files/disk-error.ts";
import { type FileBox, fileBoxes, readSpan } from "./file-boxes.ts";

/**
 * The MP4 file at `path` in pieces for a demuxer, one at a time in memory: its index (`ftyp`, `moov`)
 * if there is one, wherever that stands, then its fragments. A file that is not fragmented comes in fragments too.
 * @throws ServiceError `upstream_invalid` where a box is cut off or a piece is larger than 256 MiB;
 * `drm_protected`; `unavailable` where the file cannot be read.
 */
export function* fragmentsOf(path: string): Generator<Uint8Array> {
  const fd = openFile(path);
  try {
    const { size } = fstatSync(fd);
    const boxes = [...fileBoxes(fd, size)];
    const moov = boxes.find(({ type }) => type === "moov");
    if (moov !== undefined) {
      const index = readPiece(fd, moov);
      const [first] = boxes;
      yield first?.type === "ftyp" ? Buffer.concat([readPiece(fd, first), index]) : index;
      yield* fragmentSamples(fd, samplesOf(index, size));
    } else if (!boxes.some(({ type }) => type === "moof")) {
      throw damaged(`the file has neither "moov" nor "moof"`);
    }
    for (const span of fragmentSpans(boxes)) yield readPiece(fd, span);
  } catch (error) {
    throw diskError(`read ${path}`, error);
  } finally {
    closeSync(fd);
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw diskError(`open ${path}`, error);
  }
}

type Span = Pick<FileBox, "start" | "end">;

const maxPieceBytes = 256 << 20;

function readPiece(fd: number, { start, end }: Span): Buffer {
  if (end - start > maxPieceBytes) {
    throw damaged(
      `an index or fragment has ${end - start} bytes, at most ${maxPieceBytes} are read`,
    );
  }
  return readSpan(fd, start, end);
}

function samplesOf(index: Uint8Array, fileSize: number) {
  const [moov] = boxesIn(viewOf(index), 0, index.length);
  const tracks = readInit(index, moov!, ["video", "audio"]);
  return readTables(index, tracks, createBudget(fileSize));
}

/** From each `moof` to the end of the media data that follow it. */
function* fragmentSpans(boxes: readonly FileBox[]): Generator<Span> {
  let span: Span | undefined;
  let hasData = false;
  for (const { type, start, end } of boxes) {
    if (type === "moof" && (span === undefined || hasData)) {
      if (span !== undefined) yield span;
      span = { start, end };
      hasData = false;
    } else if (span !== undefined && (type === "moof" || type === "mdat")) {
      span.end = end;
      hasData ||= type === "mdat";
    }
  }
  if (span !== undefined) yield span;
}
