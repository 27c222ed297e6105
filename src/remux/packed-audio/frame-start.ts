import type { AudioSyntax } from "../codecs/audio-syntax.ts";

/** Returns whether a frame is at `at`, and after it another one or the end. */
export function isFrame(syntax: AudioSyntax, bytes: Uint8Array, at: number): boolean {
  const frame = syntax.frameAt(bytes, at, true);
  if (frame === null || frame === "incomplete") return false;
  const end = at + frame.size;
  return end + syntax.headerLength > bytes.length || syntax.frameAt(bytes, end, true) !== null;
}
