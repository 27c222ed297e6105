import { createHmac, hash, randomBytes } from "node:crypto";
import { type AccessKey, secretPrefix } from "../model/access-key.ts";

/** Returns a new secret of 256 random bits, as a token that headers may have. */
export function newSecret(): string {
  return secretPrefix + randomBytes(32).toString("base64url");
}

/** Returns the key to store for `secret`. */
export function accessKeyOf(
  secret: string,
  { name, admin, limits, webhook }: Pick<AccessKey, "name" | "admin" | "limits" | "webhook">,
  now: Date,
): AccessKey {
  return {
    name,
    admin,
    limits,
    created_at: now.toISOString(),
    hash: hashOf(secret),
    session_hash: hashOf(sessionSecretOf(secret)),
    ...(webhook && { webhook }),
  };
}

/** Returns the SHA-256 of a secret, hexadecimal. A slow hash would add nothing: secrets are random. */
export function hashOf(secret: string): string {
  return hash("sha256", secret);
}

/**
 * Returns the secret of the sessions of the key with this secret. It is derived, so that sessions outlive
 * restarts and end with their key, while nothing that is stored makes one.
 */
export function sessionSecretOf(secret: string): string {
  return createHmac("sha256", secret).update("session").digest("base64url");
}

/** Returns a new secret of 256 random bits. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}
