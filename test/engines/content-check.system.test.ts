import { afterAll, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { merge, resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** Records three segments of one encoder, then three of another one, whose init section is then under the same URL. */
async function record({ init, isJoin = false }: { init: Buffer | null; isJoin?: boolean }) {
  const before = layFiles("a", readRendition("video.m4s"), "m4s").resources;
  const after = layFiles("b", readRendition("video-low.m4s"), "m4s").resources;
  await using harness = await openEntry(() => engine, merge(before, after), "i.m3u8");
  const names = ["a/0.m4s", "a/1.m4s", "a/2.m4s", "b/3.m4s", "b/4.m4s", "b/5.m4s"];
  let isOver = false;
  harness.site.answer("i.m3u8", (response) => {
    const listed = names.slice(0, isOver ? 6 : 3).flatMap((name, index) => {
      return [...(isJoin && index === 3 ? ["#EXT-X-DISCONTINUITY"] : []), "#EXTINF:1,", name];
    });
    response.end(mediaPlaylist(['#EXT-X-MAP:URI="a/init.mp4"', ...listed], isOver));
  });
  harness.site.answer("a/2.m4s", async (_response, serve) => {
    await serve();
    isOver = true;
    if (init === null) harness.site.resources.delete("a/init.mp4");
    else harness.site.resources.set("a/init.mp4", resource("video/mp4", init));
  });
  return (await harness.download()).warnings;
}

const [same, other] = [readRendition("video.m4s").init!, readRendition("video-low.m4s").init!];
const changed = "the init section has changed during the recording: what came then may be damaged";

it("a recording of a live stream that changes its init section under one URL has a warning", async () => {
  expect(await record({ init: other })).toContainEqual({ code: "frames_missing", message: changed });
});

it("a recording that a later run goes on with has the warning, too", async () => {
  const before = layFiles("a", readRendition("video.m4s"), "m4s").resources;
  const after = layFiles("b", readRendition("video-low.m4s"), "m4s").resources;
  await using harness = await openEntry(() => engine, merge(before, after), "i.m3u8");
  const names = ["a/0.m4s", "a/1.m4s", "a/2.m4s", "b/3.m4s", "b/4.m4s", "b/5.m4s"];
  let count = 1;
  let hasEnded = false;
  harness.site.answer("i.m3u8", (response) => {
    const listed = names.slice(0, count).flatMap((name) => ["#EXTINF:1,", name]);
    response.end(mediaPlaylist(['#EXT-X-MAP:URI="a/init.mp4"', ...listed], hasEnded));
    hasEnded = true;
    count = Math.max(count, 3);
  });
  expect((await harness.download()).warnings).toEqual([]);
  harness.site.resources.set("a/init.mp4", resource("video/mp4", other));
  count = names.length;
  expect((await harness.download()).warnings).toContainEqual({ code: "frames_missing", message: changed });
});

it.each([
  ["that states where it does", { init: other, isJoin: true }],
  ["whose init section only says another time of its making", { init: withOtherTime(same) }],
  ["whose init section is no longer there", { init: null }],
])("a recording of a live stream %s has none", async (_, how) => {
  expect(await record(how)).toEqual([]);
});

/** Changes the creation time in `mvhd` (ISO/IEC 14496-12 §8.2.2). */
function withOtherTime(init: Buffer): Buffer {
  const copy = Buffer.from(init);
  copy.writeUInt32BE(123_456, copy.indexOf("mvhd") + 8);
  return copy;
}
