import { readFileStart } from "./file-start.ts";

/** A container by the first bytes of its files. */
export interface Signature {
  /** Without the dot. */
  ext: string;
  mime_type: string;
}

/** Containers that players know and that cannot be read here, as patterns of bytes written in Latin-1. */
const signatures: readonly (readonly [pattern: RegExp, ext: string, mime_type: string])[] = [
  [/^FLV\x01/, "flv", "video/x-flv"],
  [/^RIFF.{4}AVI /s, "avi", "video/x-msvideo"],
  [/^\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c/, "wmv", "video/x-ms-wmv"],
  // A pack header (ISO/IEC 13818-1 §2.5.3.3), or the sequence header of a bare stream.
  [/^\x00\x00\x01[\xba\xb3]/, "mpg", "video/mpeg"],
  // The pictures' own page is the first one, or comes right behind it.
  [/^OggS.{20,500}\x80theora/s, "ogv", "video/ogg"],
];

const headBytes = 512;

/** What the file at `path` is, of those that are kept as they are without a look inside. */
export function readSignature(path: string): Signature | undefined {
  const text = readFileStart(path, Buffer.alloc(headBytes)).toString("latin1");
  const found = signatures.find(([pattern]) => pattern.test(text));
  return found && { ext: found[1], mime_type: found[2] };
}
