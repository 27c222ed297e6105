/** A block of an event stream; one without data is no event, but may still carry an id. */
export interface ServerEvent {
  type: string;
  id: string | undefined;
  data: string;
}

/** Longest block, UTF-16 units; a task with all its page information has some 100,000. */
const maxLength = 16 * 1024 * 1024;

/**
 * The blocks of an event stream (WHATWG HTML §9.2.5) in groups, as they arrive; an unfinished one at
 * the end is dropped. Lines end with LF or CR LF.
 *
 * @throws Error for a block over 16 Mi characters.
 */
export async function* readEvents(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerEvent[]> {
  const decoder = new TextDecoder();
  /** Of the line that has not ended yet. */
  let pieces: string[] = [];
  let lines: string[] = [];
  let length = 0;
  for await (const bytes of stream) {
    const events: ServerEvent[] = [];
    const [first = "", ...others] = decoder.decode(bytes, { stream: true }).split("\n");
    pieces.push(first);
    length += first.length;
    for (const other of others) {
      const line = pieces.join("").replace(/\r$/, "");
      if (line !== "") {
        lines.push(line);
      } else {
        events.push(parseBlock(lines));
        lines = [];
        length = 0;
      }
      pieces = [other];
      length += other.length;
    }
    if (length > maxLength) throw new Error("the service sent an event that is too long");
    if (events.length > 0) yield events;
  }
}

function parseBlock(lines: readonly string[]): ServerEvent {
  let type = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") type = value;
    if (name === "id") id = value;
    if (name === "data") data.push(value);
  }
  return { type, id, data: data.join("\n") };
}
