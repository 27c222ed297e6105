import { describe, expect, it } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { resolveFrom } from "./page/saved-client.ts";

const url = "https://cdn.example.com/films/Otters%20at%20play.mp4";
const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.ts\n#EXTINF:2.5,\n1.ts\n#EXT-X-ENDLIST\n";

/** Creates a body that must not be read to its end. */
function endless(head: string): {
  body: () => AsyncGenerator<Uint8Array>;
  state: { closed: boolean; chunks: number };
} {
  const state = { closed: false, chunks: 0 };
  async function* body() {
    try {
      yield Buffer.from(head, "latin1");
      while (state.chunks < 100) {
        state.chunks++;
        yield Buffer.alloc(1024);
      }
      throw new Error("the file was downloaded");
    } finally {
      state.closed = true;
    }
  }
  return { body, state };
}

describe("a URL of a medium", () => {
  it("is described from its header and its first 64 KiB, and not downloaded", async () => {
    const file = endless("\0\0\0\x20ftypisom");
    const info = await resolveFrom(
      { [url]: { type: "video/mp4", headers: { "content-length": "123456" }, body: file.body } },
      url,
    );
    expect(info).toMatchObject({
      webpage_url: url,
      media_type: "video",
      title: "Otters at play",
      formats: [{ format_id: "https-mp4", url, protocol: "https", ext: "mp4", filesize: 123456 }],
      sources: { title: "media", formats: "media" },
    });
    expect(file.state.chunks).toBe(64);
  });

  it("has the height, the codecs and the duration that its index tells", async () => {
    const body = readMedium("index-first.mp4");
    const headers = { "content-length": `${body.length}` };
    const info = await resolveFrom({ [url]: { type: "video/mp4", headers, body } }, url);
    expect(info.formats).toMatchObject([{ filesize: body.length, height: 90, vcodec: "avc1.64000c" }]);
    expect(info.duration).toBeGreaterThan(0);
  });

  it.each([
    ["by its extension", "https://cdn.example.com/1.webm", "application/octet-stream", "?", "video/webm"],
    [
      "by its first bytes",
      "https://cdn.example.com/get?1",
      "application/octet-stream",
      "\0\0\0\x20ftypisom",
      "video/mp4",
    ],
    ["by its first bytes", "https://cdn.example.com/get?2", null, "\x1A\x45\xDF\xA3....", "video/webm"],
    ["by its first bytes", "https://cdn.example.com/get?3", "text/plain", "OggS\0", "audio/ogg"],
    ["by its first bytes", "https://cdn.example.com/a.php", "text/html", "\0\0\0\x20ftypM4A ", "audio/mp4"],
    ["by its first bytes", "https://cdn.example.com/b.php", "text/html; charset=utf-8", "fLaC", "audio/flac"],
    ["by its first bytes", "https://cdn.example.com/get?4", null, "caff\0\x01\0\0desc", "audio/x-caf"],
    [
      "by its first bytes",
      "https://cdn.example.com/c.html",
      "text/html",
      `G${"\0".repeat(187)}`.repeat(3),
      "video/mp2t",
    ],
    [
      "by its first bytes",
      "https://cdn.example.com/d.php",
      "text/html",
      "RIFF\x01\x02\x03\x04AVI LIST",
      "video/x-msvideo",
    ],
    [
      "by its first bytes",
      "https://cdn.example.com/e.ts",
      "text/vnd.trolltech.linguist",
      `G${"\0".repeat(187)}`.repeat(3),
      "video/mp2t",
    ],
  ])("is recognized %s: %s", async (_, mediaUrl, type, head, mime_type) => {
    const file = endless(head);
    const info = await resolveFrom({ [mediaUrl]: { type, body: file.body } }, mediaUrl);
    expect(info.formats).toMatchObject([{ url: mediaUrl, mime_type }]);
    expect(file.state.chunks).toBeLessThan(3);
  });

  it("does not leave its body open", async () => {
    const file = endless("\x1A\x45\xDF\xA3....");
    await resolveFrom({ "https://cdn.example.com/x": { type: null, body: file.body } }, "https://cdn.example.com/x");
    expect(file.state.closed).toBe(true);
  });

  it.each([
    ["by its type", "https://cdn.example.com/live", "application/x-mpegURL"],
    ["by its extension", "https://cdn.example.com/1.m3u8", "text/plain"],
    ["by its first bytes", "https://cdn.example.com/play", "text/plain"],
    ["by its first bytes", "https://cdn.example.com/1.html", "text/html; charset=utf-8"],
    ["by its first bytes", "https://cdn.example.com/1.mp4", "application/octet-stream"],
  ])("may be a playlist, recognized %s", async (_, mediaUrl, type) => {
    const info = await resolveFrom({ [mediaUrl]: { type, body: playlist } }, mediaUrl);
    expect(info).toMatchObject({
      media_type: "video",
      duration: 6.5,
      formats: [{ url: mediaUrl, protocol: "m3u8" }],
      sources: { formats: "manifest", duration: "manifest" },
    });
  });

  it("may be an MPD with a generic type", async () => {
    const body = `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"
      mediaPresentationDuration="PT1M"><Period><AdaptationSet mimeType="video/mp4">
      <Representation id="v" bandwidth="800000" width="640" height="360" codecs="avc1.4d401e">
      <SegmentTemplate media="$Number$.m4s" initialization="i.mp4" duration="4"/></Representation>
      </AdaptationSet></Period></MPD>`;
    const mpdUrl = "https://cdn.example.com/dash";
    for (const type of ["application/xml", "text/html", "application/octet-stream"]) {
      const info = await resolveFrom({ [mpdUrl]: { type, body } }, mpdUrl);
      expect(info).toMatchObject({ duration: 60, formats: [{ protocol: "dash", height: 360 }] });
    }
  });

  it("is a page if its type says so, whatever its extension", async () => {
    const info = await resolveFrom({ [url]: { body: "<title>Watch</title>" } }, url);
    expect(info).toMatchObject({ media_type: "none", title: "Watch", formats: [] });
  });

  it("is read as a page if it has no type and starts like one", async () => {
    const untypedUrl = "https://example.com/x";
    const info = await resolveFrom({ [untypedUrl]: { type: null, body: "\n<!DOCTYPE html><title>Watch" } }, untypedUrl);
    expect(info.title).toBe("Watch");
  });

  it.each([
    ["application/json", "{}"],
    ["image/png", "\x89PNG"],
    ["application/pdf", "%PDF-1.7"],
    ["application/rss+xml", "<rss><channel/></rss>"],
    ["application/atom+xml; charset=utf-8", "<?xml version='1.0'?><feed/>"],
    ["text/plain", "<rss version='2.0'><channel/></rss>"],
    ["application/octet-stream", "whatever"],
    ["text/vnd.trolltech.linguist", "<!DOCTYPE TS><TS></TS>"],
  ])("is refused with its type if it is neither page nor medium: %s", async (type, body) => {
    await expect(
      resolveFrom({ "https://example.com/x": { type, body } }, "https://example.com/x"),
    ).rejects.toMatchObject({ code: "upstream_invalid", message: expect.stringContaining(type) });
  });
});
