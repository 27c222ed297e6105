import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

describe.concurrent("a redundant live playlist is used", () => {
  const { resources, lines } = layFiles("ts", readRendition("high.m2t"), "ts");
  const total = lines.length / 2;
  const copies = ["one", "two"].flatMap((folder) =>
    [...resources].map(([path, file]) => [`${folder}/${path}`, file] as const),
  );
  const variants = [
    "#EXT-X-STREAM-INF:BANDWIDTH=1",
    "one/index.m3u8",
    "#EXT-X-STREAM-INF:BANDWIDTH=1",
    "two/index.m3u8",
  ];
  const entry = ["index.m3u8", hls(["#EXTM3U", ...variants, ""].join("\n"))] as const;

  /** A stream that has grown by a segment at each reading; a place answers 503 where `isDown` says so. */
  async function openLive(isDown: (place: string, reading: number) => boolean, isDated = true) {
    const files = [...copies, ...["one", "two"].map((folder) => [`${folder}/index.m3u8`, hls("")] as const)];
    const harness = await openEntry(open, new Map([...files, entry]), "index.m3u8");
    let readings = 0;
    for (const place of ["one", "two"]) {
      harness.site.answer(`${place}/index.m3u8`, (response) => {
        const until = Math.min(total, 2 + readings++);
        if (isDown(place, readings)) {
          response.writeHead(503).end();
          return;
        }
        const date = isDated ? ["#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z"] : [];
        const listed = lines.slice(0, 2 * until).map((line) => (line.startsWith("#") ? line : `/${place}/${line}`));
        response.writeHead(200, { "content-type": "application/vnd.apple.mpegurl" });
        response.end(mediaPlaylist([...date, ...listed], until === total));
      });
    }
    return harness;
  }

  it("when the first one fails in the middle, and nothing is lost", async () => {
    await using harness = await openLive((place, reading) => place === "one" && reading > 2);
    const { warnings, duration } = await harness.download();
    expect(warnings).toEqual([]);
    expect(Math.abs((duration ?? 0) - 6)).toBeLessThan(0.2);
  });

  it("until that one fails too; then the first one is asked again", async () => {
    await using harness = await openLive((place, reading) => (place === "one" ? reading === 3 : reading > 5));
    const { warnings, duration } = await harness.download();
    expect(warnings).toEqual([]);
    expect(Math.abs((duration ?? 0) - 6)).toBeLessThan(0.2);
  });

  it("but not one without dates, whose segments could be recorded twice", async () => {
    await using harness = await openLive((place, reading) => place === "one" && reading > 2 && reading < 6, false);
    const { warnings, duration } = await harness.download();
    expect(warnings).toEqual([]);
    expect(Math.abs((duration ?? 0) - 6)).toBeLessThan(0.2);
  });
});
