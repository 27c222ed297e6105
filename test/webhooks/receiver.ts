import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import type { Task } from "../../src/model/task.ts";
import type { WebhookEndpoint } from "../../src/model/webhook-endpoint.ts";
import { newWebhookSecret } from "../../src/keys/secrets.ts";

/** A message whose signature the library has verified. */
export interface ReceivedMessage {
  id: string;
  type: string;
  timestamp: string;
  data: Task;
  request: Pick<IncomingMessage, "method" | "url" | "headers">;
}

export type Respond = (response: ServerResponse, message: ReceivedMessage) => void;

/** Receives the messages of a webhook. */
export interface Receiver extends AsyncDisposable {
  endpoint: WebhookEndpoint;
  /** All so far, accepted or not, in the order in which they arrived. */
  messages: ReceivedMessage[];
  /** Requests whose signature was wrong. */
  forged: number;
  /** Most requests at a time so far, of all tasks and of one. */
  mostAtOnce: number;
  mostOfTask: number;
  /** How it responds; at first 204. */
  respond: Respond;
  /** Verifies with this secret from now on. */
  useSecret(secret: string): void;
  /** Resolves once that many messages have arrived. */
  until(count: number): Promise<ReceivedMessage[]>;
}

export const accept: Respond = (response) => void response.writeHead(204).end();

export function answer(status: number, headers: Record<string, string> = {}): Respond {
  return (response) => void response.writeHead(status, headers).end();
}

/** Listens on a free port of 127.0.0.1, or on `port`. */
export async function openReceiver(secret: string = newWebhookSecret(), port = 0): Promise<Receiver> {
  let webhook = new Webhook(secret);
  const present = new Map<string, number>();
  let atOnce = 0;
  let onMessage = () => {};

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url, headers } = request;
    const body = await text(request);
    const { type, timestamp, data } = webhook.verify(body, headers as Record<string, string>) as ReceivedMessage;
    const id = String(headers["webhook-id"]);
    const message = { id, type, timestamp, data, request: { method, url, headers } };
    const ofTask = (present.get(data.id) ?? 0) + 1;
    present.set(data.id, ofTask);
    atOnce += 1;
    receiver.mostAtOnce = Math.max(receiver.mostAtOnce, atOnce);
    receiver.mostOfTask = Math.max(receiver.mostOfTask, ofTask);
    response.on("close", () => {
      atOnce -= 1;
      present.set(data.id, (present.get(data.id) ?? 1) - 1);
    });
    receiver.messages.push(message);
    onMessage();
    receiver.respond(response, message);
  }

  const server = createServer((request, response) => {
    receive(request, response).catch(() => {
      receiver.forged += 1;
      response.writeHead(401).end();
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: taken } = server.address() as AddressInfo;
  const receiver: Receiver = {
    endpoint: { url: `http://127.0.0.1:${taken}/ended?token=hidden`, secret },
    messages: [],
    forged: 0,
    mostAtOnce: 0,
    mostOfTask: 0,
    respond: accept,
    useSecret(given) {
      webhook = new Webhook(given);
    },
    async until(count) {
      while (receiver.messages.length < count) {
        await new Promise<void>((resolve) => (onMessage = resolve));
      }
      return receiver.messages.slice(0, count);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
  return receiver;
}
