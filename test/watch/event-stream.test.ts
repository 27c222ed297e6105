import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEvents, type ServerEvent } from "../../src/watch/event-stream.ts";

async function read(...chunks: (string | Uint8Array)[]): Promise<ServerEvent[]> {
  async function* bytes() {
    for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
  }
  return (await Array.fromAsync(readEvents(bytes()))).flat();
}

describe("reading an event stream", () => {
  it("gives type, id and data of each event", async () => {
    expect(
      await read('event: task\nid: a-1\ndata: {"id":1}\n\nid: a-2\n\ndata:x\ndata: y\n\n'),
    ).toEqual([
      { type: "task", id: "a-1", data: '{"id":1}' },
      { type: "message", id: "a-2", data: "" },
      { type: "message", id: undefined, data: "x\ny" },
    ]);
  });

  it("passes over comments, unknown fields and an event without its end", async () => {
    expect(await read(": hello\nretry: 5\ncolour\ndata: x\r\n\r\ndata: cut off")).toEqual([
      { type: "message", id: undefined, data: "x" },
    ]);
  });

  it("gives the same however the bytes are cut", async () => {
    const text = "event: task\nid: 1\ndata: Fluß 🎬\n\n: beat\nid: 2\n\r\ndata: z\n\n";
    const whole = await read(text);
    const bytes = Buffer.from(text);
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const edges = [0, ...places.toSorted((a, b) => a - b), bytes.length];
        const pieces = edges.slice(1).map((end, i) => bytes.subarray(edges[i], end));
        expect(await read(...pieces)).toEqual(whole);
      }),
    );
  });

  it("refuses an event without end", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    await expect(read(...Array.from({ length: 20 }, () => chunk))).rejects.toThrow("too long");
    const lines = Buffer.alloc(1024 * 1024, "data: x\n");
    await expect(read(...Array.from({ length: 20 }, () => lines))).rejects.toThrow("too long");
  });
});
