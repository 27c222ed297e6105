import { type Static, Type } from "@sinclair/typebox";

/**
 * What Standard Webhooks demands of a secret: `whsec_` and the base64 of 24 to 64 bytes.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export const webhookSecretPattern = "^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

const webhookUrlPattern = "^https?://";

/** Where messages about ended tasks are sent, and the secret that signs them. */
export const WebhookEndpoint = Type.Object({
  url: Type.String({ pattern: webhookUrlPattern, maxLength: 8192, description: "called as it stands" }),
  secret: Type.String({ pattern: webhookSecretPattern, description: "signs the messages" }),
});
export type WebhookEndpoint = Static<typeof WebhookEndpoint>;

/** Whether messages can be sent to `url`: http or https, without user name and password. */
export function isWebhookUrl(url: string): boolean {
  const { username, password } = URL.parse(url) ?? {};
  return new RegExp(webhookUrlPattern).test(url) && username === "" && password === "" && url.length <= 8192;
}
