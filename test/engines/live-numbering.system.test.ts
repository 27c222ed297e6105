import { readFile } from "node:fs/promises";
import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { type EngineHarness, openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** What a playlist lists: segments of a second (25 pictures), as `folder/number`, and tags before them. */
interface Listed {
  sequence: number;
  names: string[];
  hasEnded?: boolean;
  /** Second at which the first one starts, if it is dated. */
  dateS?: number;
  /** What the text ends with, instead of what comes after it. */
  cutAfter?: string;
}

const rendition = readRendition("high.m2t");

/** A live stream whose playlist is the first of `lists`, then the next; the last one stays. */
async function openLists(lists: readonly Listed[]): Promise<EngineHarness> {
  const before = layFiles("a", rendition, "ts").resources;
  const after = layFiles("b", rendition, "ts").resources;
  const harness = await openEntry(() => engine, merge(before, after), "index.m3u8");
  let reading = 0;
  harness.site.answer("index.m3u8", async (_response, serve) => {
    const list = lists[Math.min(reading, lists.length - 1)]!;
    reading += 1;
    harness.site.resources.set("index.m3u8", hls(playlistOf(list)));
    await serve();
  });
  return harness;
}

function playlistOf({ cutAfter, ...list }: Listed): string {
  const text = playlistTextOf(list);
  return cutAfter === undefined ? text : text.slice(0, text.lastIndexOf(cutAfter) + cutAfter.length);
}

function playlistTextOf({ sequence, names, hasEnded = false, dateS }: Listed): string {
  const date = dateS === undefined ? "" : new Date(dateS * 1000).toISOString();
  const lines = names.flatMap((name) =>
    name.startsWith("#") ? [name] : ["#EXTINF:1.0,", `${name}.ts?token=${Math.random()}`],
  );
  const dated = dateS === undefined ? lines : [`#EXT-X-PROGRAM-DATE-TIME:${date}`, ...lines];
  return mediaPlaylist([`#EXT-X-MEDIA-SEQUENCE:${sequence}`, ...dated], hasEnded);
}

/** Returns `folder/from` … up to `folder/until`. */
const range = (folder: string, from: number, until: number): string[] =>
  Array.from({ length: until - from }, (_, i) => `${folder}/${from + i}`);

async function record(harness: EngineHarness) {
  const { path, warnings } = await harness.download();
  const { frames } = (await probe(path)).streams[0]!;
  return { frames, warnings: warnings.map(({ code, message }) => `${code}: ${message}`) };
}

/** Returns the AVCDecoderConfigurationRecord of an init section (ISO/IEC 14496-15 §5.4.2.1). */
function configOf(init: Buffer): Buffer {
  const at = init.indexOf("avcC");
  return init.subarray(at, at + init.readUInt32BE(at - 4) - 4);
}

const anew = "gap: the playlist restarted its numbering after 3.0 s, and media before that may be missing";

describe.concurrent("a live stream whose playlist", () => {
  it("is numbered from 0 after a restart is recorded on", async () => {
    await using harness = await openLists([
      { sequence: 57, names: range("a", 0, 3) },
      { sequence: 0, names: range("b", 0, 1) },
      { sequence: 0, names: range("b", 0, 2) },
      { sequence: 0, names: range("b", 0, 3) },
      { sequence: 1, names: range("b", 1, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 225, warnings: [anew] });
  });

  it("is numbered from 0 in its last list is recorded to its end", async () => {
    await using harness = await openLists([
      { sequence: 57, names: range("a", 0, 3) },
      { sequence: 0, names: range("b", 0, 2), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 125, warnings: [anew] });
  });

  describe.concurrent("goes back without dates, and then on,", () => {
    const lists = [
      { sequence: 0, names: range("a", 0, 3) },
      { sequence: 0, names: range("a", 0, 1) },
      { sequence: 0, names: range("a", 0, 2) },
      { sequence: 0, names: range("a", 0, 4) },
      { sequence: 0, names: range("a", 0, 5), hasEnded: true },
    ];

    it("has no warning if its segments are the same", async () => {
      await using harness = await openLists(lists);
      expect(await record(harness)).toEqual({ frames: 125, warnings: [] });
      expect(harness.site.asked.filter(({ path }) => path === "a/2.ts")).toHaveLength(2);
    });

    it("has no warning if its segments are no longer there", async () => {
      await using harness = await openLists(lists);
      harness.site.answer("a/2.ts", async (_response, serve) => {
        await serve();
        harness.site.resources.delete("a/2.ts");
      });
      expect(await record(harness)).toEqual({ frames: 125, warnings: [] });
    });

    it.each([
      ["", lists],
      [", and ends there", [...lists.slice(0, 2), { ...lists[2]!, hasEnded: true }]],
    ])("has a warning if its server has other media under the URLs of its segments%s", async (_, listed) => {
      await using harness = await openLists(listed);
      const { resources } = harness.site;
      harness.site.answer("a/2.ts", async (_response, serve) => {
        await serve();
        for (const number of [0, 1, 2, 3, 4]) resources.set(`a/${number}.ts`, resources.get(`b/${5 - number}.ts`)!);
      });
      expect((await record(harness)).warnings).toContainEqual(anew);
    });
  });

  it("is numbered from 0 with the URLs of other segments is recorded on, by their dates", async () => {
    await using harness = await openLists([
      { sequence: 0, names: range("a", 0, 3), dateS: 1_700_000_000 },
      { sequence: 0, names: range("a", 0, 2), dateS: 1_700_000_060 },
      { sequence: 0, names: range("a", 0, 3), dateS: 1_700_000_060, hasEnded: true },
    ]);
    const { resources } = harness.site;
    harness.site.answer("a/0.ts", async (_response, serve) => {
      await serve();
      resources.set("a/0.ts", resources.get("b/5.ts")!);
    });
    const first = rendition.pieces[0]!.data.length;
    const last = rendition.pieces[5]!.data.length;
    expect(await record(harness)).toEqual({ frames: 150, warnings: [anew] });
    const others = 2 * (rendition.pieces[1]!.data.length + rendition.pieces[2]!.data.length);
    expect(harness.progress.at(-1)?.downloaded_bytes).toBe(first + last + others);
  });

  it("is numbered from 0 after a restart with a clock that was set back is recorded on", async () => {
    await using harness = await openLists([
      { sequence: 57, names: range("a", 0, 3), dateS: 1_700_000_000 },
      ...[1, 2, 3].map((until) => ({ sequence: 0, names: range("b", 0, until), dateS: 1_600_000_000 })),
      { sequence: 1, names: range("b", 1, 6), dateS: 1_600_000_001, hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 225, warnings: [anew] });
  });

  it("is for a while that of another server, which is late, is recorded without a warning", async () => {
    const lists = [2, 3, 0, 1, 2, 3].map((sequence) => ({ sequence, names: range("a", sequence, sequence + 2) }));
    await using harness = await openLists([...lists, { sequence: 4, names: range("a", 4, 6), hasEnded: true }]);
    expect(await record(harness)).toEqual({ frames: 100, warnings: [] });
  });

  it("is an old one of another server, from before the recording, is not recorded", async () => {
    await using harness = await openLists([
      { sequence: 60, names: range("a", 0, 3), dateS: 1_700_000_060 },
      ...[1, 2, 3, 4].map((until) => ({ sequence: 40, names: range("b", 0, until), dateS: 1_700_000_040 })),
      { sequence: 61, names: range("a", 1, 6), dateS: 1_700_000_061, hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it.each([
    ["at once", 6, 6],
    ["by and by", 5, 6],
  ])(
    "is numbered from 0 with the URLs of what was recorded, and grows beyond it %s, says that media may be missing",
    async (_how, until, end) => {
      await using harness = await openLists([
        { sequence: 0, names: range("a", 0, 5) },
        ...[1, 2, 3, until].map((shown) => ({ sequence: 0, names: range("a", 0, shown) })),
        { sequence: 0, names: range("a", 0, end), hasEnded: true },
      ]);
      const { frames, warnings } = await record(harness);
      expect(frames).toBe(25 * end);
      expect(warnings).toEqual([
        "gap: the playlist restarted its numbering after 5.0 s, and media before that may be missing",
      ]);
    },
  );

  it("is numbered from 0 with the URLs of what was recorded, and ends before it, is recorded to its end", async () => {
    const lists = [5, 1, 2, 4].map((until) => ({ sequence: 0, names: range("a", 0, until), hasEnded: until === 4 }));
    await using harness = await openLists(lists);
    expect(await record(harness)).toEqual({
      frames: 225,
      warnings: ["gap: the playlist restarted its numbering after 5.0 s, and media before that may be missing"],
    });
  });

  it("ends without the last segment that it has listed has no segment twice", async () => {
    const lists = [5, 4].map((until) => ({ sequence: 0, names: range("a", 0, until), hasEnded: until === 4 }));
    await using harness = await openLists(lists);
    expect(await record(harness)).toEqual({ frames: 125, warnings: [] });
  });

  it("is numbered from 0 with the URLs of what was recorded as the recording is ended says that media may be missing", async () => {
    const lists = [5, 2, 3].map((until) => ({ sequence: 0, names: range("a", 0, until) }));
    await using harness = await openLists(lists);
    const finish = new AbortController();
    const readings = () => harness.site.asked.filter(({ path }) => path === "index.m3u8").length;
    // The one after the last list shows that this one was read.
    void harness.site.until(() => readings() > lists.length + 1).then(() => finish.abort());
    const { warnings } = await harness.download({}, undefined, finish.signal);
    expect(warnings.map(({ code, message }) => `${code}: ${message}`)).toEqual([
      "gap: the playlist restarted its numbering after 5.0 s, and media before that may be missing",
    ]);
  });

  it("is numbered from 0 and forgets the discontinuity before that keeps its times", async () => {
    await using harness = await openLists([
      { sequence: 57, names: range("a", 0, 3) },
      { sequence: 0, names: ["#EXT-X-DISCONTINUITY", ...range("b", 0, 1)] },
      { sequence: 0, names: ["#EXT-X-DISCONTINUITY", ...range("b", 0, 2)] },
      { sequence: 1, names: range("b", 1, 4) },
      { sequence: 1, names: range("b", 1, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 225, warnings: [anew] });
  });

  it("jumps to other numbers has no segment twice", async () => {
    await using harness = await openLists([
      { sequence: 5, names: range("a", 0, 3) },
      { sequence: 1000, names: range("a", 1, 4) },
      { sequence: 7, names: range("a", 2, 5) },
      { sequence: 8, names: range("a", 3, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("jumps to other numbers and URLs has no segment twice, by their dates", async () => {
    await using harness = await openLists([
      { sequence: 5, names: range("a", 0, 3), dateS: 1_700_000_000 },
      { sequence: 1000, names: range("b", 1, 6), dateS: 1_700_000_001, hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it.each([
    ["counts the readings", [0, 1, 2]],
    ["states no numbers", [0, 0, 0]],
    ["goes back by one for once", [5, 4, 8]],
    ["goes forward by one for once", [5, 7, 8]],
  ])("slides and %s has each segment once, by their URLs", async (_how, [first, second, third]) => {
    await using harness = await openLists([
      { sequence: first!, names: range("a", 0, 3) },
      { sequence: second!, names: range("a", 1, 4) },
      { sequence: third!, names: range("a", 3, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("jumps to other numbers has one init section", async () => {
    const { resources } = layFiles("a", readRendition("video.m4s"), "m4s");
    await using harness = await openEntry(() => engine, merge(resources), "index.m3u8");
    let reading = 0;
    harness.site.answer("index.m3u8", async (_response, serve) => {
      const from = reading++;
      const names = range("a", from, from + 3).flatMap((name) => ["#EXTINF:1.0,", `${name}.m4s`]);
      const lines = ['#EXT-X-MAP:URI="a/init.mp4"', ...names];
      harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, from === 3)));
      await serve();
    });
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("has another init section under one URL after a discontinuity is recorded with both", async () => {
    const [before, after] = ["video.m4s", "video-low.m4s"].map((name) => readRendition(name));
    const resources = merge(layFiles("b", after!, "m4s").resources, layFiles("a", before!, "m4s").resources);
    await using harness = await openEntry(() => engine, resources, "index.m3u8");
    const map = '#EXT-X-MAP:URI="a/init.mp4"';
    const named = (names: string[]) => [map, ...names.flatMap((name) => ["#EXTINF:1.0,", `${name}.m4s`])];
    const { site } = harness;
    const initsAsked = () => site.asked.filter(({ path }) => path === "a/init.mp4").length;
    let reading = 0;
    site.answer("index.m3u8", async (_response, serve) => {
      reading += 1;
      if (initsAsked() > 0) site.resources.set("a/init.mp4", site.resources.get("b/init.mp4")!);
      const restarted = reading > 3 ? ["#EXT-X-DISCONTINUITY", ...named(range("b", 0, 3))] : [];
      const lines = [...named(range("a", 0, 3)), ...restarted];
      site.resources.set("index.m3u8", hls(mediaPlaylist(lines, reading > 3)));
      await serve();
    });
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    const file = await readFile(path);
    for (const { init } of [before!, after!]) expect(file.includes(configOf(init!))).toBe(true);
  });

  it("repeats one URL has all its segments", async () => {
    await using harness = await openLists([
      { sequence: 5, names: ["a/0", "a/1", "b/1"] },
      { sequence: 5, names: ["a/0", "a/1", "b/1", "b/1"] },
      { sequence: 6, names: ["a/1", "b/1", "b/1", "a/5"], hasEnded: true },
    ]);
    expect((await record(harness)).frames).toBe(125);
  });

  const join = "#EXT-X-DISCONTINUITY";

  it("does not count the discontinuities that it forgets keeps its times", async () => {
    await using harness = await openLists([
      { sequence: 0, names: [...range("a", 3, 5), join, ...range("b", 0, 2)] },
      { sequence: 2, names: range("b", 0, 3) },
      { sequence: 3, names: [...range("b", 1, 4), join, "a/5"], hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 175, warnings: [] });
  });

  it("does so and lists none of the segments before goes on after them", async () => {
    await using harness = await openLists([
      { sequence: 0, names: [...range("a", 3, 5), join, ...range("b", 0, 2)] },
      { sequence: 5, names: range("b", 3, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({
      frames: 175,
      warnings: [expect.stringMatching(/^gap: the playlist has no media of 1 segment after 4\.0 s/)],
    });
  });

  it("went on without segments that were not read has a gap", async () => {
    await using harness = await openLists([
      { sequence: 5, names: range("a", 0, 2) },
      { sequence: 9, names: range("a", 4, 6), hasEnded: true },
    ]);
    const { frames, warnings } = await record(harness);
    expect(frames).toBe(100);
    expect(warnings).toEqual([
      expect.stringMatching(/^gap: the playlist has no media of 2 segments after 2\.0 s; no video from 2\.0 to 4\.0 s/),
    ]);
  });

  it.each([
    ["", {}],
    [" as VOD", { names: ["#EXT-X-PLAYLIST-TYPE:VOD", ...range("a", 0, 6)] }],
  ])("is cut off%s within a URL that another segment has is recorded whole", async (_, change) => {
    const list = { sequence: 0, names: range("a", 0, 6), ...change };
    await using harness = await openLists([
      { ...list, cutAfter: "a/5" },
      { ...list, hasEnded: true },
    ]);
    const { resources } = harness.site;
    resources.set("a/5", resources.get("a/0.ts")!);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("never ends its last line has all its segments", async () => {
    await using harness = await openLists([
      { sequence: 0, names: range("a", 0, 5), cutAfter: "a/4.ts" },
      { sequence: 0, names: range("a", 0, 6), cutAfter: "a/5.ts" },
    ]);
    const { frames, warnings } = await record(harness);
    expect(frames).toBe(150);
    expect(warnings).toEqual([expect.stringMatching(/^stream_lost: /)]);
  });

  describe("has segments that its server answers with", () => {
    const many = [1, 2, 3, 4, 5, 6];
    async function openWithout(numbers: readonly number[], status: number): Promise<EngineHarness> {
      const names = [...range("a", 0, 6), "#EXT-X-DISCONTINUITY", ...range("b", 0, 6)];
      const harness = await openLists([
        { sequence: 0, names, hasEnded: false },
        { sequence: 0, names, hasEnded: true },
      ]);
      for (const number of numbers) {
        const path = number < 6 ? `a/${number}.ts` : `b/${number - 6}.ts`;
        harness.site.answer(path, (response) => response.writeHead(status).end());
      }
      return harness;
    }

    it.each([403, 404, 410])("%d is recorded without them", async (status) => {
      await using harness = await openWithout([2, 7], status);
      expect(await record(harness)).toEqual({
        frames: 250,
        warnings: [
          "frames_missing: 2 of 12 segments had no media",
          expect.stringMatching(/^gap: no video from 2\.0 to 3\.0 s/),
        ],
      });
    });

    it.each([404, 410])("%d for a moment is recorded with them", async (status) => {
      await using harness = await openWithout([], status);
      let isThere = false;
      harness.site.answer("a/2.ts", (response, serve) => {
        if (isThere) return serve();
        isThere = true;
        return response.writeHead(status).end();
      });
      expect(await record(harness)).toEqual({ frames: 300, warnings: [] });
    });

    it("404 after a long time, and later have, is recorded with them", async () => {
      const first = { sequence: 0, names: range("a", 0, 3) };
      const readings = 5;
      const whole = { sequence: 0, names: range("a", 0, 6), hasEnded: true };
      await using harness = await openLists([...Array.from({ length: readings }, () => first), whole]);
      const readAll = () => harness.site.asked.filter(({ path }) => path === "index.m3u8").length >= readings;
      let isThere = false;
      harness.site.answer("a/2.ts", async (response, serve) => {
        if (isThere) return serve();
        isThere = true;
        await harness.site.until(readAll);
        return response.writeHead(404).end();
      });
      expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
    });

    it.each([404, 410])("%d is recorded without the first one, or many in a row", async (status) => {
      for (const numbers of [[0], many]) {
        await using harness = await openWithout(numbers, status);
        expect((await record(harness)).frames).toBe(25 * (12 - numbers.length));
      }
    });

    it("403 is not recorded if they are the first one, or more than five in a row", async () => {
      for (const numbers of [[0], many]) {
        await using harness = await openWithout(numbers, 403);
        await expect(harness.download()).rejects.toMatchObject({ upstreamStatus: 403 });
      }
    });

    it("403 is not recorded if more than five in a row are, and later ones come before the last of them", async () => {
      await using harness = await openWithout(many, 403);
      const later = Promise.withResolvers<void>();
      harness.site.answer("b/5.ts", async (response, serve) => {
        response.once("close", () => later.resolve());
        await serve();
      });
      harness.site.answer("a/4.ts", async (response) => {
        await later.promise;
        response.writeHead(403).end();
      });
      await expect(harness.download()).rejects.toMatchObject({ upstreamStatus: 403 });
    });

    it("403 is recorded without five in a row, and five more after one that is there", async () => {
      await using harness = await openWithout([1, 2, 3, 4, 5, 7, 8, 9, 10, 11], 403);
      expect((await record(harness)).frames).toBe(50);
    });
  });

  it("ends with segments that it has marked as gaps says so, and not if gaps came before others", async () => {
    const names = range("a", 0, 3);
    const marked = (...numbers: number[]) => numbers.flatMap((n) => ["#EXT-X-GAP", `a/${n}`]);
    await using harness = await openLists([
      { sequence: 0, names },
      { sequence: 0, names: [...names, ...marked(3, 4)], hasEnded: true },
    ]);
    const ends = "gap: the playlist has no media of 2 segments after 3.0 s";
    expect(await record(harness)).toEqual({ frames: 75, warnings: [ends] });
    await using other = await openLists([
      { sequence: 0, names: [...marked(0, 1), ...range("a", 2, 3)] },
      { sequence: 0, names: [...marked(0, 1), ...range("a", 2, 5)], hasEnded: true },
    ]);
    expect(await record(other)).toEqual({ frames: 75, warnings: [] });
  });

  it("is an old one of a cache has no segment twice", async () => {
    const old = { sequence: 0, names: range("a", 0, 2) };
    await using harness = await openLists([
      { sequence: 0, names: range("a", 0, 4) },
      old,
      old,
      old,
      old,
      { sequence: 1, names: range("a", 1, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("is one from before the recording is not recorded", async () => {
    const old = { sequence: 10, names: range("a", 0, 2) };
    await using harness = await openLists([
      { sequence: 13, names: range("a", 3, 5) },
      old,
      old,
      old,
      old,
      { sequence: 13, names: range("a", 3, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 75, warnings: [] });
  });

  it("has new URLs whenever it is read has no segment twice", async () => {
    await using harness = await openLists([
      { sequence: 0, names: range("a", 0, 3) },
      { sequence: 0, names: range("b", 0, 4) },
      { sequence: 1, names: range("a", 1, 6), hasEnded: true },
    ]);
    expect(await record(harness)).toEqual({ frames: 150, warnings: [] });
  });

  it("was numbered again is recorded on by a later run", async () => {
    await using harness = await openLists([
      { sequence: 57, names: range("a", 0, 3) },
      ...[1, 2, 3].map((until) => ({ sequence: 0, names: range("b", 0, until) })),
    ]);
    const controller = new AbortController();
    const downloading = harness.download({}, controller.signal);
    downloading.catch(() => {});
    await harness.site.until(() => harness.site.asked.some(({ path }) => path === "b/2.ts"));
    controller.abort("killed");
    await expect(downloading).rejects.toBe("killed");
    harness.site.answer("index.m3u8", async (_response, serve) => {
      const list = { sequence: 2, names: range("b", 2, 6), hasEnded: true };
      harness.site.resources.set("index.m3u8", hls(playlistOf(list)));
      await serve();
    });
    expect(await record(harness)).toEqual({ frames: 225, warnings: [anew] });
  });

  for (const status of [404, 410]) {
    it(`is gone with status ${status} ends with what there is, and says so`, async () => {
      await using harness = await openLists([{ sequence: 0, names: range("a", 0, 3) }]);
      let isFirst = true;
      harness.site.answer("index.m3u8", async (response, serve) => {
        if (!isFirst) return response.writeHead(status).end();
        isFirst = false;
        const list = { sequence: 0, names: range("a", 0, 3) };
        harness.site.resources.set("index.m3u8", hls(playlistOf(list)));
        return serve();
      });
      const message = `stream_lost: the recording ended before the playlist said that the stream had ended: its server responds with status ${status}`;
      expect(await record(harness)).toEqual({ frames: 75, warnings: [message] });
    });
  }

  it("stops growing ends with what there is, and says so", async () => {
    await using harness = await openLists([{ sequence: 0, names: range("a", 0, 3) }]);
    const { frames, warnings } = await record(harness);
    expect(frames).toBe(75);
    expect(warnings).toEqual([expect.stringMatching(/^stream_lost: .* it listed nothing new$/)]);
  });
});
