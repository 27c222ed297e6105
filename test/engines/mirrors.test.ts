import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layNumbered, mpd, numberTemplate, type Representation } from "../media/dash.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { dash, hls, merge, resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"], concurrentFragments: 1 });
afterAll(() => engine.close());
const open = () => engine;

/** Two redundant variants, each in a folder of its own. */
function redundantHls(other = "BANDWIDTH=1000000"): Resources {
  const { resources, lines } = layFiles("ts", readRendition("high.m2t"), "ts");
  const copies = ["one", "two"].flatMap((folder) =>
    [...resources, ["index.m3u8", hls(mediaPlaylist(lines))] as const].map(
      ([path, file]) => [`${folder}/${path}`, file] as const,
    ),
  );
  const variants = [
    "#EXT-X-STREAM-INF:BANDWIDTH=1000000",
    "one/index.m3u8",
    `#EXT-X-STREAM-INF:${other}`,
    "two/index.m3u8",
  ];
  return new Map([...copies, ["index.m3u8", hls(["#EXTM3U", ...variants, ""].join("\n"))]]);
}

const isIn = (folder: string) => (path: string) => path.startsWith(`${folder}/`);

/** The hash of what is downloaded while all places serve. */
async function wholeFile(resources: Resources, entry: string): Promise<string> {
  await using harness = await openEntry(open, resources, entry);
  return (await harness.download()).sha256;
}

describe("a redundant HLS variant is used", () => {
  it.each(["index.m3u8", "ts/0.ts", "ts/2.ts"])("if the first one has no %s", async (missing) => {
    const resources = redundantHls();
    const whole = await wholeFile(resources, "index.m3u8");
    resources.delete(`one/${missing}`);
    await using harness = await openEntry(open, resources, "index.m3u8");
    const { sha256, warnings } = await harness.download();
    expect([sha256, warnings]).toEqual([whole, []]);
  });

  it("for what comes after the segment that is missing", async () => {
    const resources = redundantHls();
    resources.delete("one/ts/1.ts");
    await using harness = await openEntry(open, resources, "index.m3u8");
    await harness.download();
    const asked = harness.site.asked.map(({ path }) => path).filter((path) => path.endsWith(".ts"));
    const last = asked.findLastIndex(isIn("one"));
    expect(asked.slice(last + 1).length).toBeGreaterThan(2);
  });

  it("but not one that has other attributes, or none that lists other segments", async () => {
    const unlike = redundantHls("BANDWIDTH=900000");
    unlike.delete("one/index.m3u8");
    const { lines } = layFiles("ts", readRendition("high.m2t"), "ts");
    const shifted = redundantHls();
    shifted.delete("one/ts/1.ts");
    shifted.set("two/index.m3u8", hls(mediaPlaylist(["#EXTINF:9,", "ts/0.ts", "#EXTINF:9,", ...lines.slice(3)])));
    for (const resources of [unlike, shifted]) {
      await using harness = await openEntry(open, resources, "index.m3u8");
      await expect(harness.download()).rejects.toMatchObject({ code: "upstream_status", upstreamStatus: 404 });
    }
  });
});

describe("a further BaseURL of DASH is used", () => {
  const video: Representation = {
    id: "v",
    mimeType: "video/mp4",
    codecs: "avc1.64000c",
    addressing: `<BaseURL>one/</BaseURL><BaseURL>two/</BaseURL>${numberTemplate("m4s", 1, 1)}`,
  };

  function segments(): Resources {
    const laid = layNumbered("v", readRendition("video.m4s"), "m4s");
    const copies = ["one", "two"].flatMap((folder) =>
      [...laid].map(([path, file]) => [`${folder}/${path}`, file] as const),
    );
    return merge(new Map(copies), new Map([["main.mpd", dash(mpd([[video]], 6))]]));
  }

  it.each(["init.m4s", "1.m4s", "3.m4s"])("if the first one has no %s", async (missing) => {
    const resources = segments();
    const whole = await wholeFile(resources, "main.mpd");
    expect(resources.delete(`one/v/${missing}`)).toBe(true);
    await using harness = await openEntry(open, resources, "main.mpd");
    expect((await harness.download()).sha256).toBe(whole);
  });

  it("if a Representation is one file", async () => {
    const film = resource("video/mp4", readMedium("index-first.mp4"));
    const addressing = "<BaseURL>one/film.mp4</BaseURL><BaseURL>two/film.mp4</BaseURL>";
    const resources: Resources = new Map([
      ["two/film.mp4", film],
      ["main.mpd", dash(mpd([[{ ...video, addressing }]], 6))],
    ]);
    await using harness = await openEntry(open, resources, "main.mpd");
    expect((await harness.download()).size).toBeGreaterThan(0);
    const asked = harness.site.asked.map(({ path }) => path);
    expect(asked).toContain("one/film.mp4");
  });

  it("in the order of the MPD, and the first error is reported if none serves", async () => {
    const resources = segments();
    for (const path of resources.keys()) if (path.endsWith("/v/1.m4s")) resources.delete(path);
    await using harness = await openEntry(open, resources, "main.mpd");
    await expect(harness.download()).rejects.toThrow(/one\/v\/1\.m4s failed with status 404/);
  });
});

describe("content steering of DASH", () => {
  const places = ["one", "two", "three"];
  const film = layNumbered("v", readRendition("video.m4s"), "m4s");

  /** An MPD with a BaseURL for each place, of which the steering names the last ones first. */
  function steered(steering: string, locations: readonly string[] = places): Resources {
    const urls = places.map((place, i) => `<BaseURL serviceLocation="${locations[i]}">${place}/</BaseURL>`);
    const video: Representation = {
      id: "v",
      mimeType: "video/mp4",
      codecs: "avc1.64000c",
      addressing: `${urls.join("")}${numberTemplate("m4s", 1, 1)}`,
    };
    const text = mpd([[video]], 6).replace("<Period", `${steering}<Period`);
    const copies = places.flatMap((place) => [...film].map(([path, file]) => [`${place}/${path}`, file] as const));
    return merge(new Map(copies), new Map([["main.mpd", dash(text)]]));
  }

  const element = (attributes: string) => `<ContentSteering ${attributes}>https://steering.example/</ContentSteering>`;

  /** The places that were asked for media, in order; those in `broken` have no second segment. */
  async function placesOf(resources: Resources, ...broken: string[]): Promise<string[]> {
    for (const place of broken) expect(resources.delete(`${place}/v/2.m4s`)).toBe(true);
    await using harness = await openEntry(open, resources, "main.mpd");
    const { warnings } = await harness.download();
    expect(warnings).toEqual([]);
    const asked = harness.site.asked.map(({ path }) => path.split("/", 1)[0] ?? "");
    return [...new Set(asked.filter((place) => places.includes(place)))];
  }

  it("names the places that are tried first, in its order", async () => {
    const steering = element('defaultServiceLocation=" three  two " queryBeforeStart="true"');
    expect(await placesOf(steered(steering))).toEqual(["three"]);
    expect(await placesOf(steered(steering), "three")).toEqual(["three", "two"]);
    expect(await placesOf(steered(steering), "three", "two")).toEqual(["three", "two", "one"]);
  });

  it("gives the same file wherever it begins", async () => {
    const hashes = ["", element('defaultServiceLocation="two"')].map((steering) =>
      wholeFile(steered(steering), "main.mpd"),
    );
    const [whole, other] = await Promise.all(hashes);
    expect(other).toBe(whole);
  });

  it("changes nothing if it names no place, or none of the MPD", async () => {
    for (const steering of ["", element(""), element('defaultServiceLocation="four"')]) {
      expect(await placesOf(steered(steering), "one")).toEqual(["one", "two"]);
    }
  });

  it("leaves the order of places alone that have one service location", async () => {
    const locations = ["a", "b", "b"];
    const resources = steered(element('defaultServiceLocation="b"'), locations);
    expect(await placesOf(resources, "two")).toEqual(["two", "three"]);
  });
});
