import { createParser, type EventSourceMessage } from "eventsource-parser";

/** Longest event, UTF-16 units; a task with all its page information has some 100,000. */
const maxBufferSize = 16 * 1024 * 1024;

/**
 * Yields the events of an event stream (WHATWG HTML §9.2.6), in groups as they arrive. A block without
 * data is not an event; an event that is incomplete at the end of the stream is dropped.
 *
 * @throws Error if an event has over 16 Mi characters.
 */
export async function* readEvents(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<EventSourceMessage[]> {
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize,
    onEvent: (event) => void events.push(event),
    onError({ type }) {
      if (type !== "max-buffer-size-exceeded") return;
      throw new Error("the service sent an event that is too long");
    },
  });
  for await (const bytes of stream) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    if (events.length > 0) yield events.splice(0);
  }
}
