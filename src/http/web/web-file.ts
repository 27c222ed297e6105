import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

/** Content codings (RFC 9110 §8.4.1), best first. */
export const codings = ["br", "gzip", "identity"] as const;
export type Coding = (typeof codings)[number];

/** One file that browsers get. */
export interface WebFile {
  type: string;
  /** Weak, as it is the same for every coding (RFC 9110 §8.8.1). */
  etag: string;
  /** Returns the file in that coding, which is made once. */
  encode(coding: Coding): Promise<Buffer>;
}

export function createWebFile(type: string, text: string): WebFile {
  const bytes = Buffer.from(text);
  const encoded = new Map<Coding, Promise<Buffer>>();
  return {
    type,
    etag: `W/"${createHash("sha256").update(bytes).digest("base64url")}"`,
    encode(coding) {
      const known = encoded.get(coding);
      if (known !== undefined) return known;
      const made = encoders[coding](bytes);
      encoded.set(coding, made);
      return made;
    },
  };
}

const encoders: Record<Coding, (bytes: Buffer) => Promise<Buffer>> = {
  // Its defaults are the best compression.
  br: promisify<Buffer, Buffer>(brotliCompress),
  gzip: (bytes) => compress(bytes, { level: 9 }),
  identity: async (bytes) => bytes,
};

const compress = promisify(gzip);
