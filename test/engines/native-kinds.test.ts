import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { Format } from "../../src/model/page-info.ts";
import { openEntry, openMedia } from "../contracts/engine/harness.ts";
import { layWebm } from "../media/dash.ts";
import { probe } from "../media/probe.ts";
import { join, readMedium, readRendition } from "../media/rendition.ts";
import { dash, resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

const one = (path: string, body: Buffer): Resources => new Map([[path, resource("application/octet-stream", body)]]);

/** A file of which only the first bytes are read. */
const headed = (head: string): Buffer => Buffer.concat([Buffer.from(head, "latin1"), rest]);
const rest = Buffer.alloc(5_000, 0x5a);

describe.concurrent("a progressive file is kept unchanged:", () => {
  const asfId = "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
  const unread: readonly (readonly [string, string, string])[] = [
    ["flv", "video/x-flv", "FLV\x01\x05\0\0\0\x09"],
    ["avi", "video/x-msvideo", "RIFF\x0a\x0d\x0a\x0dAVI LIST"],
    ["wmv", "video/x-ms-wmv", asfId],
    ["mpg", "video/mpeg", "\0\0\x01\xba\x44"],
    ["ogv", "video/ogg", `OggS\0\x02${"\0".repeat(20)}\x01\x2a\x80theora`],
  ];
  for (const [ext, mime_type, head] of unread) {
    it(`${ext}, which only players can read`, async () => {
      await using harness = await openEntry(open, one("film", headed(head)), "film");
      const info = { ext, mime_type, size: head.length + rest.length, duration: null };
      expect(await harness.download()).toMatchObject(info);
    });
  }

  it("Matroska with audio only", async () => {
    const webm = readMedium("audio.webm");
    const body = webm.subarray(webm.indexOf(Buffer.from("18538067", "hex")));
    const head = Buffer.from("1a45dfa38b4282886d6174726f736b61", "hex");
    const film = one("a.mka", Buffer.concat([head, body]));
    await using harness = await openEntry(open, film, "a.mka");
    expect(await harness.download()).toMatchObject({ ext: "mka", mime_type: "audio/x-matroska" });
  });

  it("an MP4 with stray bytes after its end", async () => {
    const body = Buffer.concat([readMedium("index-first.mp4"), Buffer.from("stray")]);
    await using harness = await openEntry(open, one("a.mp4", body), "a.mp4");
    expect(await harness.download()).toMatchObject({ ext: "mp4", size: body.length });
  });

  for (const [name, ext] of [
    ["tone.mp3", "mp3"],
    ["tone.aac", "aac"],
    ["vorbis.ogg", "ogg"],
    ["aac.m4a", "m4a"],
  ] as const) {
    it(`${ext}, if only audio is wanted`, async () => {
      const body = readMedium(name);
      await using harness = await openEntry(open, one(name, body), name);
      expect(await harness.download({ audioOnly: true })).toMatchObject({ ext, size: body.length });
    });
  }
});

describe.concurrent("a file that its page calls audio, of which only audio is wanted,", () => {
  const wanted = ({ job }: { job: { format: Format } }) => ({
    audioOnly: true,
    format: { ...job.format, vcodec: "none" },
  });

  it("is kept if it cannot be read whether it has video", async () => {
    const body = headed("\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c");
    await using harness = await openEntry(open, one("song.wma", body), "song.wma");
    expect(await harness.download(wanted(harness))).toMatchObject({ ext: "wmv", size: body.length });
  });

  it("becomes another one if it has video", async () => {
    await using harness = await openEntry(open, one("song.m4a", readMedium("index-first.mp4")), "song.m4a");
    const { path } = await harness.download(wanted(harness));
    expect((await probe(path)).streams.map(({ kind }) => kind)).toEqual(["audio"]);
  });

  it("is refused if it is Ogg with video and audio that cannot be put into another file", async () => {
    const body = headed(`OggS\0\x02${"\0".repeat(20)}\x01\x2a\x80theora`);
    await using harness = await openEntry(open, one("song.ogg", body), "song.ogg");
    await expect(harness.download(wanted(harness))).rejects.toMatchObject({ code: "format_unavailable" });
  });
});

describe.concurrent("audio whose last frame is cut off", () => {
  const body = readMedium("tone.aac").subarray(0, -5);

  it("is kept if the server has no more of it", async () => {
    await using harness = await openEntry(open, one("a.aac", body), "a.aac");
    expect(await harness.download()).toMatchObject({ ext: "aac", size: body.length });
  });

  it("is refused as truncated if the server did not state its length", async () => {
    await using harness = await openEntry(open, one("a.aac", body), "a.aac");
    harness.site.answer("a.aac", (response) => response.writeHead(200).end(body));
    const error = { code: "upstream_unreachable", retryable: true };
    await expect(harness.download()).rejects.toMatchObject(error);
  });
});

describe.concurrent("a message names what cannot be put into another file:", () => {
  const tag = (type: number, first: number) =>
    `${String.fromCharCode(type)}\0\0\x01${"\0".repeat(7)}${String.fromCharCode(first)}\0\0\0\0`;
  for (const [name, head] of [
    ["FLV with Sorenson H.263 and MP3", `FLV\x01\x05\0\0\0\x09\0\0\0\0${tag(9, 0x12)}${tag(8, 0x2f)}`],
    [
      "an MPEG program stream with MPEG-1 or MPEG-2 video and MPEG audio",
      `\0\0\x01\xba${"D".repeat(10)}\0\0\x01\xe0${"D".repeat(20)}\0\0\x01\xc0`,
    ],
  ] as const) {
    it(`such as ${name}`, async () => {
      await using harness = await openEntry(open, one("film", headed(head)), "film");
      await expect(harness.download({ audioOnly: true })).rejects.toMatchObject({
        code: "format_unavailable",
        message: `${name} cannot be put into MP4 or WebM`,
      });
    });
  }
});

describe.concurrent("video without audio", () => {
  for (const name of ["single-video.mp4", "silent.m2t", "video.webm"]) {
    it(`is refused if only audio is wanted (${name})`, async () => {
      await using harness = await openEntry(open, one("a", readMedium(name)), "a");
      const error = { code: "format_unavailable", retryable: false };
      await expect(harness.download({ audioOnly: true })).rejects.toMatchObject(error);
    });
  }
});

describe.concurrent("a progressive MPEG-TS file", () => {
  const film = one("film.ts", join(readRendition("high.m2t")));

  it("yields its audio only", async () => {
    await using harness = await openEntry(open, film, "film.ts");
    const made = await harness.download({ audioOnly: true });
    expect(made).toMatchObject({ ext: "m4a", mime_type: "audio/mp4", width: null });
    expect((await probe(made.path)).streams).toMatchObject([{ kind: "audio", frames: 283 }]);
  });

  it("is merged with audio from an AAC file", async () => {
    const both = new Map([...film, ...one("tone.aac", readMedium("tone.aac"))]);
    await using harness = await openEntry(open, both, "film.ts");
    const { job, site } = harness;
    const audio = { ...job.format, url: site.url("tone.aac"), ext: "aac", vcodec: "none" };
    const made = await harness.download({ format: { ...job.format, acodec: "none" }, audio });
    const { streams } = await probe(made.path);
    const expected = (await probe(await harness.keep("tone.aac", readMedium("tone.aac")))).streams[0];
    expect(streams).toMatchObject([
      { kind: "video", frames: 150 },
      { kind: "audio", frames: expected?.frames },
    ]);
  });
});

describe("DASH of WebM, whose files are put together as they are,", () => {
  const film = layWebm(readMedium("video.webm"), readMedium("audio.webm"), 6);
  const download = async (offset: number) => {
    const text = film.get("film.mpd")!.body.toString();
    const [before, after] = text.split('<Representation id="audio"');
    const moved = after!.replace("timescale=", `presentationTimeOffset="${offset}" timescale=`);
    const manifest = dash(`${before!}<Representation id="audio"${moved}`);
    await using harness = await openMedia(open, {
      resources: new Map([...film, ["film.mpd", manifest]]),
      entry: "film.mpd",
    });
    return await harness.download();
  };

  it("is refused if an offset moves the audio against the video, and no other file can be made", async () => {
    expect(await download(0)).toMatchObject({ ext: "webm", warnings: [] });
    const message = expect.stringContaining("presentationTimeOffset moves one by 1.000 s against another");
    await expect(download(1)).rejects.toMatchObject({ code: "format_unavailable", message });
  });
});
