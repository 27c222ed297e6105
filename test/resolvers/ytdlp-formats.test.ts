import { setImmediate, setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { DownloadFormat, PageInfo } from "../../src/model/page-info.ts";
import { createYtDlpResolver } from "./page/local-reader.ts";
import { createSavedClient, pageUrl } from "./page/saved-client.ts";
import { createRecordedYtDlp, fileDict, readRecorded, videoDict } from "./ytdlp/recorded.ts";

function ids({ formats }: PageInfo): string[] {
  return formats.map(({ format_id }) => format_id);
}

async function readFormat(changes: Record<string, unknown>, forDownload = false): Promise<DownloadFormat | undefined> {
  const { formats } = await readRecorded(videoDict({ formats: [fileDict(changes)] }), {
    forDownload,
  });
  return formats[0];
}

const mpdUrl = "https://cdn.example.com/main.mpd";
const mpd = `<MPD type="static" mediaPresentationDuration="PT10S" xmlns="urn:mpeg:dash:schema:mpd:2011"><Period>
<AdaptationSet mimeType="video/mp4" codecs="avc1.64001e"><SegmentTemplate media="$RepresentationID$-$Number$.m4s" duration="5"/>
<Representation id="v" bandwidth="500000" width="320" height="180"/></AdaptationSet>
<AdaptationSet mimeType="audio/mp4" codecs="mp4a.40.2"><SegmentTemplate media="$RepresentationID$-$Number$.m4s" duration="5"/>
<Representation id="a" bandwidth="64000"/></AdaptationSet></Period></MPD>`;
const dashDict = (format_id: string, changes = {}) =>
  fileDict({
    format_id,
    protocol: "http_dash_segments",
    url: mpdUrl,
    manifest_url: mpdUrl,
    ...changes,
  });

describe("the formats of the yt-dlp resolver", () => {
  it("have the size that yt-dlp estimates, else bit rate × duration", async () => {
    const estimated = fileDict({ format_id: "a", filesize_approx: 2_000.4, tbr: 100 });
    const known = fileDict({ format_id: "b", filesize: 3_000, filesize_approx: 1, tbr: 90 });
    const rated = fileDict({ format_id: "c", tbr: 80 });
    const unknown = fileDict({ format_id: "d", filesize_approx: "many" });
    const read = async (changes: Record<string, unknown>) => {
      const formats = [unknown, rated, known, estimated];
      const info = await readRecorded(videoDict({ formats, ...changes }));
      return info.formats.map((format) => [format.filesize, format.filesize_approx]);
    };
    const stated = [
      [null, 2_000],
      [3_000, null],
    ];
    expect(await read({ duration: 10 })).toEqual([...stated, [null, 100_000], [null, null]]);
    const live = { duration: 10, live_status: "is_live" };
    expect(await read(live)).toEqual([...stated, [null, null], [null, null]]);
    const own = { ...dashDict("v"), filesize_approx: 1 };
    const info = await readRecorded(videoDict({ formats: [own], duration: 8 }), {}, { [mpdUrl]: { body: mpd } });
    expect(info.formats.map(({ filesize_approx }) => filesize_approx)).toEqual([500_000, 64_000]);
  });

  it("are files, HLS and DASH as the engine fetches them", async () => {
    expect(
      await readFormat({
        format_note: "x",
        width: 640,
        height: 360,
        fps: 29.97,
        vcodec: "avc1.42001E",
        acodec: "mp4a.40.2",
        tbr: 500.1234,
        filesize: 12_345,
        filesize_approx: 1,
        language: "en",
        has_drm: "maybe",
      }),
    ).toEqual({
      format_id: "18",
      url: "https://cdn.example.com/18.mp4",
      manifest_url: null,
      protocol: "https",
      ext: "mp4",
      mime_type: null,
      width: 640,
      height: 360,
      fps: 29.97,
      vcodec: "avc1.42001E",
      acodec: "mp4a.40.2",
      tbr: 500.123,
      filesize: 12_345,
      filesize_approx: null,
      language: "en",
      has_drm: false,
    });
    const hls = { protocol: "m3u8_native", url: "https://cdn.example.com/v.m3u8" };
    expect(await readFormat({ ...hls, manifest_url: "https://cdn.example.com/main.m3u8" })).toMatchObject({
      protocol: "m3u8",
      url: "https://cdn.example.com/v.m3u8",
      manifest_url: "https://cdn.example.com/main.m3u8",
    });
    expect(await readFormat(hls)).toMatchObject({ manifest_url: hls.url });
  });

  it("have the names that HLS gives to several audios in one language", async () => {
    const audio = (group: string, name: string) =>
      fileDict({
        format_id: `hls-${group}-${name.replaceAll(" ", "_")}`,
        format_note: name,
        url: `https://cdn.example.com/${group}/${name}.m3u8`,
        manifest_url: "https://cdn.example.com/main.m3u8",
        protocol: "m3u8_native",
        vcodec: "none",
        language: "en",
      });
    const namesOf = async (...formats: object[]) =>
      (await readRecorded(videoDict({ formats }))).formats.map(({ name }) => name);
    expect(await namesOf(audio("low", "With jokes"), audio("low", "English"), audio("high", "English"))).toEqual([
      "English",
      "English",
      "With jokes",
    ]);
    expect(await namesOf(audio("low", "English 64k"), audio("high", "English 128k"))).toEqual([undefined, undefined]);
  });

  it("are the dict itself if it lists none", async () => {
    const { formats: _, ...dict } = videoDict({ ...fileDict(), format_id: "0", protocol: "http" });
    expect(await readRecorded(dict)).toMatchObject({
      formats: [{ format_id: "0", url: "https://cdn.example.com/18.mp4", protocol: "https" }],
    });
  });

  it.each([
    [{ protocol: "mhtml" }],
    [{ protocol: "rtmp" }],
    [{ protocol: "ism" }],
    [{ protocol: "f4m" }],
    [{ protocol: "websocket_frag" }],
    [{ protocol: "http_dash_segments_generator" }],
    [{ protocol: "constructor" }],
    [{ protocol: null }],
    [{ url: "rtmp://cdn.example.com/1" }],
    [{ url: "https://user:secret@cdn.example.com/1" }],
    [{ url: 7 }],
    [{ vcodec: "none", acodec: "none" }],
    [{ request_data: true }],
    [{ hls_aes: true }],
    [{ protocol: "http_dash_segments" }],
    [{ protocol: "http_dash_segments", fragments: " https://a.test/1\n ftp://a.test" }],
  ])("leave out what the engine cannot fetch: %o", async (changes) => {
    expect(await readFormat(changes, true)).toBeUndefined();
  });

  it("have unique ids, the best first", async () => {
    const formats = [
      fileDict({ format_id: "s", vcodec: "none" }),
      fileDict({ format_id: "v", height: 360 }),
      fileDict({ format_id: "v", height: 720 }),
      fileDict({ format_id: null }),
    ];
    expect(ids(await readRecorded(videoDict({ formats })))).toEqual(["v", "v~1", "https", "s"]);
  });

  it("list audio for few last, so that nobody gets it unasked", async () => {
    const audio = (format_id: string, tbr: number, language_preference: number) =>
      fileDict({
        format_id,
        vcodec: "none",
        acodec: "opus",
        language: "en",
        tbr,
        language_preference,
      });
    const formats = [audio("described", 160, -10), audio("plain", 128, 10), fileDict()];
    const info = await readRecorded(videoDict({ formats }));
    expect(ids(info)).toEqual(["18", "plain", "described"]);
    expect(info.language).toBe("en");
  });

  it("know that audio files have no video", async () => {
    expect(await readFormat({ ext: "mp3" })).toMatchObject({ vcodec: "none", acodec: null });
  });

  it("are listed by our own reader from a DASH manifest", async () => {
    const headers = {
      "User-Agent": "Otter/1",
      Referer: "https://video.example.com/",
      Accept: "*/*",
    };
    const dashDicts = ["dash-1", "dash-2"].map((id) => dashDict(id, { http_headers: headers }));
    const formats = [fileDict(), ...dashDicts];
    const read = (responses: Record<string, { body: string } | Error>) =>
      readRecorded(videoDict({ formats }), {}, responses);
    const info = await read({ [mpdUrl]: { body: mpd } });
    expect(info.formats.map(({ protocol, url }) => [protocol, url])).toEqual([
      ["dash", mpdUrl],
      ["https", "https://cdn.example.com/18.mp4"],
      ["dash", mpdUrl],
    ]);
    expect(info.formats[0]).toMatchObject({ height: 180, acodec: "none" });
    expect(info.formats[0]).toHaveProperty("http_headers", {
      "User-Agent": "Otter/1",
      Referer: "https://video.example.com/",
    });
    const unreachable = new ServiceError("upstream_unreachable", "gone");
    expect(ids(await read({ [mpdUrl]: unreachable }))).toEqual(["18"]);
    expect(ids(await read({ [mpdUrl]: { body: "<html>" } }))).toEqual(["18"]);
  });

  it("are said to be missing if their manifest cannot be read, or is the fourth", async () => {
    const gone = new ServiceError("upstream_status", "GET failed with status 404");
    const tall = [dashDict("1", { height: 720 }), dashDict("2", { height: 1080 })];
    const { warnings } = await readRecorded(videoDict({ formats: [fileDict(), ...tall] }), {}, { [mpdUrl]: gone });
    const message = "2 formats, up to 1080 pixels high, are not listed: GET failed with status 404";
    expect(warnings).toEqual([{ code: "formats_missing", message, height: 1080 }]);

    const urls = ["a", "b", "c", "d"].map((name) => `https://cdn.example.com/${name}.mpd`);
    const formats = urls.map((url) => dashDict("v", { url, manifest_url: url }));
    const responses = Object.fromEntries(urls.map((url) => [url, { body: mpd }]));
    const fourth = await readRecorded(videoDict({ formats }), {}, responses);
    expect(fourth.warnings).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(
          /^1 format is not listed: \S+\/a\.mpd is not read, as at most 3 MPDs of a page are$/,
        ),
        height: null,
      }),
    ]);
    const read = await readRecorded(videoDict({ formats: formats.slice(1) }), {}, responses);
    expect(read).not.toHaveProperty("warnings");
  });

  it.each(["m3u", "pls"])("are no lists of media (%s) that yt-dlp takes for files", async (ext) => {
    const list = fileDict({ format_id: "0", url: `https://radio.example/listen.${ext}`, ext });
    expect(ids(await readRecorded(videoDict({ formats: [list, fileDict()] })))).toEqual(["18"]);
  });

  it("that a download lacks all fail with why their manifest cannot be read", async () => {
    const gone = new ServiceError("upstream_unreachable", "gone", { retryable: true });
    const info = readRecorded(videoDict({ formats: [dashDict("v")] }), { forDownload: true }, { [mpdUrl]: gone });
    await expect(info).rejects.toBe(gone);
  });

  it("stop waiting for a manifest when the call is aborted", async () => {
    const abort = new AbortController();
    const reason = new Error("changed my mind");
    async function* body() {
      abort.abort(reason);
      yield await Promise.reject(reason);
    }
    const dict = videoDict({ formats: [dashDict("dash-1")] });
    await expect(readRecorded(dict, { signal: abort.signal }, { [mpdUrl]: { body } })).rejects.toBe(reason);
  });

  it("keep the large manifests of eight pages in memory at a time", async () => {
    const { promise: isFull, resolve: onFull } = Promise.withResolvers<void>();
    let large = 0;
    let most = 0;
    async function* body() {
      for (let i = 0; i < 3; i += 1) yield Buffer.alloc(256 * 1024, " ");
      most = Math.max(most, (large += 1));
      if (large === 8) onFull();
      await isFull;
      // Others would become large now.
      await setImmediate();
      large -= 1;
    }
    const resolver = createYtDlpResolver({
      ytDlp: createRecordedYtDlp({ info: videoDict({ formats: [fileDict(), dashDict("dash-1")] }) }),
      client: createSavedClient({ [mpdUrl]: { body } }),
    });
    const signal = AbortSignal.timeout(60_000);
    const pages = Array.from({ length: 12 }, () => resolver.resolve(new URL(pageUrl), { signal }));
    expect((await Promise.all(pages)).map(ids)).toEqual(Array.from({ length: 12 }, () => ["18"]));
    expect(most).toBe(8);
  });

  it("stop waiting for a manifest before the caller's deadline", async () => {
    // As the client does when its signal is aborted, which it is before this.
    async function* body(requestSignal: AbortSignal) {
      await wait(300);
      yield await Promise.reject(requestSignal.reason);
    }
    const dict = videoDict({ formats: [fileDict(), dashDict("dash-1")] });
    const deadlineMs = performance.now() + 200;
    const info = await readRecorded(dict, { deadlineMs }, { [mpdUrl]: { body } });
    expect(ids(info)).toEqual(["18"]);
  });

  it("have their fragments and cookies for a download only", async () => {
    const dash = {
      protocol: "http_dash_segments",
      url: "https://cdn.example.com/d/",
      fragment_base_url: "https://cdn.example.com/d/",
      fragments: " init.mp4\n5.0 1.m4s\n https://a.test/2",
      cookies: "session=secret; Domain=.example.com; Path=/",
      http_headers: {
        authorization: "Bearer secret",
        origin: "https://video.example.com",
        Cookie: "a=b",
      },
    };
    const shown = await readFormat(dash);
    expect(JSON.stringify(shown)).not.toContain("secret");
    expect(shown).not.toHaveProperty("fragments");
    expect(shown).toMatchObject({ protocol: "dash", manifest_url: null });
    expect(shown?.http_headers).toEqual({ Origin: "https://video.example.com" });
    expect(await readFormat(dash, true)).toMatchObject({
      cookies: "session=secret; Domain=.example.com; Path=/",
      http_headers: { Authorization: "Bearer secret", Origin: "https://video.example.com" },
      fragments: [
        { url: "https://cdn.example.com/d/init.mp4", duration: null },
        { url: "https://cdn.example.com/d/1.m4s", duration: 5 },
        { url: "https://a.test/2", duration: null },
      ],
    });
  });

  it("have a role by the first 2,000 characters of their note", async () => {
    const note = (length: number) => ({ vcodec: "none", language: "en", format_note: `${" ".repeat(length)}original` });
    expect(await readFormat(note(1_900))).toMatchObject({ audio_role: "original" });
    expect(await readFormat(note(2_000))).not.toMatchObject({ audio_role: "original" });
  });

  it("have no header or cookie that would break a request", async () => {
    const format = await readFormat(
      { cookies: "a=b\r\nx: y", http_headers: { Referer: "a\nb: c", "User-Agent": "é", Origin: 7 } },
      true,
    );
    expect(format).not.toHaveProperty("cookies");
    expect(format).not.toHaveProperty("http_headers");
  });

  it("say how large the ranges may be that the site serves at full speed", async () => {
    const chunked = (http_chunk_size: unknown) => ({ downloader_options: { http_chunk_size } });
    expect(await readFormat(chunked(10_485_760))).toMatchObject({ http_chunk_size: 10_485_760 });
    for (const size of [1, -1, 1.5, "1000000", null]) {
      expect(await readFormat(chunked(size))).not.toHaveProperty("http_chunk_size");
    }
  });

  it("are the best 2,000", async () => {
    const formats = Array.from({ length: 10_000 }, (_, n) => fileDict({ format_id: `f${n}`, height: n + 1 }));
    const info = await readRecorded(videoDict({ formats }));
    expect(info.formats).toHaveLength(2_000);
    expect(ids(info)[0]).toBe("f9999");
  });
});
