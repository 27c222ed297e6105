import { type Static, Type } from "@sinclair/typebox";
import { time } from "./schema.ts";
import { WebhookEndpoint } from "./webhook-endpoint.ts";

const limit = (maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, description }));

/** What a key may use at most; a limit that is left out does not apply. */
export const KeyLimits = Type.Object({
  rate: limit(1_000_000, "requests per minute"),
  max_running: limit(1_000_000, "tasks that run at a time"),
  max_queued: limit(100_000_000, "tasks that wait"),
  max_bytes: limit(999_999_999_999_999, "bytes of stored files and of records of tasks"),
});
export type KeyLimits = Static<typeof KeyLimits>;

/** Names are part of URLs and log lines, and stand in the tasks of their owners. */
export const keyNamePattern = "^[a-z0-9][a-z0-9._-]{0,63}$";

const hexHash = (description: string) => Type.String({ pattern: "^[0-9a-f]{64}$", description });

/** An access key as it is stored: neither its secret nor that of its sessions can be found from it. */
export const AccessKey = Type.Object({
  name: Type.String({ pattern: keyNamePattern, description: "unique; owner of its tasks" }),
  admin: Type.Boolean({ description: "sees the tasks of all owners" }),
  limits: KeyLimits,
  created_at: time("when it was added"),
  hash: hexHash("SHA-256 of the secret"),
  session_hash: hexHash("SHA-256 of the secret of its sessions"),
  webhook: Type.Optional(WebhookEndpoint),
});
export type AccessKey = Static<typeof AccessKey>;

/** How every secret starts, so that people and scanners know it as one. */
export const secretPrefix = "unreel_";

/** Returns the text with what may be secrets replaced: messages quote what clients have sent. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(/\bunreel_[\w-]+/g, `${secretPrefix}…`);
}

/**
 * Returns the path of a request with what may be secrets replaced. If characters of one are percent-encoded, which does not keep it from
 * working, what follows the first of them is left out.
 */
export function pathWithoutSecrets(path: string): string {
  const decoded = path.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  const isHidden = decoded !== path && withoutSecrets(decoded) !== decoded;
  return withoutSecrets(isHidden ? `${path.split("%", 1)[0]}…` : path);
}
