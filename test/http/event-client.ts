import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { App } from "../../src/http/app.ts";

/** A block of the stream; one without data is no event, but may still carry an id. */
export interface ServerEvent {
  type: string;
  id: string | undefined;
  data: string;
}

interface EventClient {
  response: IncomingMessage;
  /** The next `count` blocks, those without data included. */
  take(count: number): Promise<ServerEvent[]>;
  /** All blocks until the service ends the stream. */
  rest(): Promise<ServerEvent[]>;
  hangUp(): void;
}

/** Watches the tasks over a real connection; the app must listen. */
export async function openEvents(app: App, headers: Record<string, string> = {}, query = ""): Promise<EventClient> {
  const { port } = app.server.address() as AddressInfo;
  const path = `/tasks/events${query}`;
  const call = request({ host: "127.0.0.1", port, path, headers, agent: false }).end();
  onTestFinished(() => void call.destroy());
  const [response] = (await once(call, "response")) as [IncomingMessage];
  const groups = readBlocks(response);
  const events: ServerEvent[] = [];

  async function more(): Promise<boolean> {
    const { done, value } = await groups.next();
    events.push(...(value ?? []));
    return done !== true;
  }

  return {
    response,
    async take(count) {
      while (events.length < count && (await more()));
      if (events.length < count) throw new Error(`the stream ended after ${events.length} events`);
      return events.splice(0, count);
    },
    async rest() {
      while (await more());
      return events.splice(0);
    },
    hangUp: () => void call.destroy(),
  };
}

/** Yields the blocks in groups, as they arrive, exactly as the service wrote them. */
async function* readBlocks(stream: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    yield blocks.map(parseBlock);
  }
}

function parseBlock(block: string): ServerEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  return { type: field("event") ?? "message", id: field("id"), data: field("data") ?? "" };
}
