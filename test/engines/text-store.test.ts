import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { TextPart } from "../../src/engines/native/texts/place-cues.ts";
import { type TextSink, TextStore } from "../../src/engines/native/texts/text-store.ts";
import { makeFolder } from "../folder.ts";

const MiB = 1 << 20;
const part = (cues: number, fields: Partial<TextPart> = {}): TextPart => ({
  cues: Array.from({ length: cues }, (_, i) => ({
    startS: i,
    endS: i + 1,
    text: `${i} – 汉`,
    settings: "align:start",
  })),
  map: null,
  place: null,
  ...fields,
});

/** Reads a track of so many bytes, which come in pieces of at most 1 MiB. */
const track = (bytes: number, parts: readonly TextPart[] = [part(1)]) => {
  return async (sink: TextSink): Promise<void> => {
    for (let at = 0; at < bytes; at += MiB) {
      sink.count(Math.min(MiB, bytes - at));
      await Promise.resolve();
    }
    for (const each of parts) await sink.add(each);
  };
};
const refused = (message: string) =>
  expect.objectContaining({ code: "upstream_invalid", message: expect.stringContaining(message) });

describe("the subtitles of a download", () => {
  it.each([
    ["short", MiB, 0],
    ["long", MiB + 1, 1],
  ])("are there again as they were read, those of a %s track", async (_, bytes, files) => {
    const folder = makeFolder();
    const place = { timeline: 0, offsetS: null, fromS: 4, lastsS: 2 };
    const map = { localS: 1, mpegTs: 2 };
    const parts = [part(2500, { place, map }), part(0, { place }), part(1000, { isMp4: true }), part(1)];
    const stored = await new TextStore(folder).keep(track(bytes, parts));
    expect(readdirSync(folder)).toHaveLength(files);
    expect(stored.hasCues).toBe(true);
    for (let time = 0; time < 2; time++) expect(stored.parts()).toEqual(parts);
  });

  it.each([1, 2 * MiB])("have no cues if none of their parts has, with %i bytes", async (bytes) => {
    const stored = await new TextStore(makeFolder()).keep(track(bytes, [part(0), part(0)]));
    expect(stored.hasCues).toBe(false);
  });

  it("may have 32 MiB each and 64 MiB together", async () => {
    const store = new TextStore(makeFolder());
    await expect(store.keep(track(32 * MiB + 1))).rejects.toEqual(refused("more than 33554432 bytes"));
    await store.keep(track(32 * MiB));
    await store.keep(track(31 * MiB));
    await expect(store.keep(track(MiB + 1))).rejects.toEqual(refused("with the others of the video"));
    await store.keep(track(MiB));
    await expect(store.keep(track(1))).rejects.toEqual(refused("67108864 bytes"));
  });

  it("are read one at a time if they are long, and do not wait for those if they are short", async () => {
    const store = new TextStore(makeFolder());
    let reading = 0;
    const ended: string[] = [];
    const { promise: shortHasEnded, resolve } = Promise.withResolvers<void>();
    const long = async (sink: TextSink) => {
      sink.count(2 * MiB);
      reading += 1;
      expect(reading).toBe(1);
      await shortHasEnded;
      await track(10 * MiB)(sink);
      reading -= 1;
    };
    const keep = async (name: string, read: (sink: TextSink) => Promise<void>) => {
      await store.keep(read);
      ended.push(name);
      if (name === "short") resolve();
    };
    await Promise.all([keep("long", long), keep("long", long), keep("short", track(MiB))]);
    expect(ended).toEqual(["short", "long", "long"]);
  });

  it("are read in many turns of the event loop if they are long", async () => {
    let turns = 0;
    let isCounting = true;
    const count = () => {
      turns += 1;
      if (isCounting) setImmediate(count);
    };
    const store = new TextStore(makeFolder());
    await store.keep(async (sink) => {
      sink.count(2 * MiB);
      setImmediate(count);
      await sink.add(part(20_000));
    });
    isCounting = false;
    expect(turns).toBeGreaterThan(50);
  });

  it("that cannot be read count for nothing", async () => {
    const store = new TextStore(makeFolder());
    const broken = async (sink: TextSink) => {
      await track(32 * MiB)(sink);
      throw new Error("broken");
    };
    await expect(store.keep(broken)).rejects.toThrow("broken");
    await store.keep(track(32 * MiB));
    await store.keep(track(32 * MiB));
  });
});
