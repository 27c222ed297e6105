import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** What a link leads to. */
export interface LinkTarget {
  taskId: string;
  name: string;
  /** When it ends, milliseconds since 1970. */
  endsMs: number;
  /** Hash of the key that made it; `null`: there were no keys. */
  keyHash: string | null;
}

/** How every token starts, so that `withoutSecrets` knows it as a secret. */
const prefix = "unreel_link_";
const algorithm = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;
/** Of a target with the longest names. */
const maxTokenLength = 4_096;

export type LinkTokens = ReturnType<typeof createLinkTokens>;

/**
 * Creates the tokens of links: the target, encrypted and authenticated (AES-256-GCM), so that none can be read or made without
 * `secret`.
 *
 * @param secret 32 random bytes or more.
 */
export function createLinkTokens(secret: Uint8Array) {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "links", 32));
  return {
    seal({ taskId, name, endsMs, keyHash }: LinkTarget): string {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv(algorithm, key, iv);
      const text = cipher.update(JSON.stringify([taskId, name, endsMs, keyHash]));
      const sealed = Buffer.concat([iv, text, cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString("base64url");
    },

    /** Returns undefined for what `seal` did not return. */
    open(token: string): LinkTarget | undefined {
      if (!token.startsWith(prefix) || token.length > maxTokenLength) return undefined;
      const sealed = Buffer.from(token.slice(prefix.length), "base64url");
      // One text for one token.
      if (sealed.length <= ivBytes + tagBytes || prefix + sealed.toString("base64url") !== token) return undefined;
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, ivBytes), { authTagLength: tagBytes });
      decipher.setAuthTag(sealed.subarray(-tagBytes));
      try {
        const text = Buffer.concat([decipher.update(sealed.subarray(ivBytes, -tagBytes)), decipher.final()]);
        const [taskId, name, endsMs, keyHash] = JSON.parse(text.toString()) as [string, string, number, string | null];
        return { taskId, name, endsMs, keyHash };
      } catch {
        // It was made with another secret, or changed.
        return undefined;
      }
    },
  };
}
