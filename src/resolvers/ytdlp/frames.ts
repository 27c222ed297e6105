import type { Readable } from "node:stream";

/** What the Python process sends: see `_write_frame` in `python/fork_server.py`. */
export interface Frame {
  kind: string;
  /** Number of the request; 0 for what concerns the process itself. */
  id: number;
  payload: Buffer;
}

const headBytes = 9;
const maxPayloadBytes = 64 * 1024;

/**
 * Calls `onFrame` for each frame in `input`. Calls `onInvalid` once, and reads no further, if `onFrame`
 * throws, or the input is not made of frames.
 */
export function readFrames(
  input: Readable,
  onFrame: (frame: Frame) => void,
  onInvalid: (reason: string) => void,
): void {
  let rest: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    try {
      let frame = takeFrame(rest);
      while (frame !== undefined) {
        rest = rest.subarray(headBytes + frame.payload.length);
        onFrame(frame);
        frame = takeFrame(rest);
      }
    } catch (error) {
      input.off("data", onData).resume();
      onInvalid(error instanceof Error ? error.message : String(error));
    }
  };
  input.on("data", onData);
}

function takeFrame(bytes: Buffer): Frame | undefined {
  const kind = bytes.toString("latin1", 0, 1);
  if (/[^A-Z]/.test(kind)) throw new Error("it sent something other than frames");
  if (bytes.length < headBytes) return undefined;
  const id = bytes.readUInt32BE(1);
  const length = bytes.readUInt32BE(5);
  if (length > maxPayloadBytes) throw new Error(`it sent a frame of ${length} bytes`);
  if (bytes.length < headBytes + length) return undefined;
  return { kind, id, payload: bytes.subarray(headBytes, headBytes + length) };
}
