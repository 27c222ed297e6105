import { type Static, Type } from "@sinclair/typebox";
import { AccessKey, KeyLimits, keyNamePattern } from "../model/access-key.ts";
import { accessKeyOf, newSecret, newWebhookSecret } from "./secrets.ts";
import { ServiceError } from "../model/errors.ts";
import type { KeyStore } from "../stores/key-store.ts";
import { WebhookEndpoint } from "../model/webhook-endpoint.ts";

const name = Type.String({ pattern: keyNamePattern });

/** What can be done with keys. */
export const KeyCommand = Type.Union([
  Type.Object({
    command: Type.Literal("add"),
    name,
    admin: Type.Boolean(),
    limits: KeyLimits,
    webhook: Type.Optional(WebhookEndpoint.properties.url),
  }),
  Type.Object({ command: Type.Literal("list") }),
  Type.Object({
    command: Type.Literal("remove"),
    name,
    last: Type.Boolean({ description: "also if it is the last key" }),
  }),
]);
export type KeyCommand = Static<typeof KeyCommand>;

const ShownKey = Type.Composite([
  Type.Pick(AccessKey, ["name", "admin", "limits", "created_at"]),
  Type.Object({ webhook: Type.Optional(Type.String({ description: "origin of its URL" })) }),
]);
type ShownKey = Static<typeof ShownKey>;

/** What a command returns: `secret` if a key was added, `webhook_secret` if with a webhook, `keys` if they were listed. */
export const KeyResult = Type.Object({
  secret: Type.Optional(Type.String()),
  webhook_secret: Type.Optional(Type.String()),
  keys: Type.Optional(Type.Array(ShownKey)),
});
export type KeyResult = Static<typeof KeyResult>;

/** @throws ServiceError `conflict` if the name is taken or the last key would go; `not_found`; the store's errors. */
export async function runKeyCommand(keys: KeyStore, command: KeyCommand): Promise<KeyResult> {
  if (command.command === "list") return { keys: (await keys.list()).map(toShown) };
  if (command.command === "add") {
    const secret = newSecret();
    const { webhook: url, ...given } = command;
    const webhook = url === undefined ? undefined : { url, secret: newWebhookSecret() };
    await keys.add(accessKeyOf(secret, { ...given, ...(webhook && { webhook }) }, new Date()));
    return { secret, ...(webhook && { webhook_secret: webhook.secret }) };
  }
  if (!command.last) await assertNotLast(keys, command.name);
  await keys.remove(command.name);
  return {};
}

/** Without keys, the service is open to all. */
async function assertNotLast(keys: KeyStore, removed: string): Promise<void> {
  const [first, second] = await keys.list();
  if (first?.name !== removed || second !== undefined) return;
  const rule = "without keys everybody who reaches the service may use it; --last removes it";
  throw new ServiceError("conflict", `${removed} is the last key: ${rule}`);
}

function toShown({ name: shown, admin, limits, created_at, webhook }: AccessKey): ShownKey {
  const origin = webhook && URL.parse(webhook.url)?.origin;
  return { name: shown, admin, limits, created_at, ...(origin && { webhook: origin }) };
}
