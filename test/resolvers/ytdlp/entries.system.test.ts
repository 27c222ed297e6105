import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHttpClient } from "../../../src/net/http/http-client.ts";
import { createYtDlpResolver } from "../page/local-reader.ts";
import type { YtDlp } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { never, openHarness, type YtDlpHarness } from "./harness.ts";
import { createVariant, installed, missing, type Variant } from "./installed.ts";

/** Playlists whose entries yt-dlp makes as they are read. */
const extractor = `
from .common import InfoExtractor
from ..utils import ExtractorError, InAdvancePagedList, OnDemandPagedList
__all__ = ['ListedIE']
class ListedIE(InfoExtractor):
    _VALID_URL = r'https?://listed\\.example/(?P<id>[\\w-]+)'
    def _real_extract(self, url):
        kind, count, *_ = self._match_id(url).split('-')
        return self.playlist_result(getattr(self, '_' + kind)(int(count)), 'p', kind)
    def _entry(self, n, **more):
        return self.url_result(f'http://listed.example/video/{n}', video_title=f'Otter {n}', duration=n, **more)
    def _list(self, count):
        return [self._entry(n) for n in range(count)]
    def _generator(self, count):
        yield from self._list(count)
    def _pages(self, count):
        return OnDemandPagedList(lambda page: (self._entry(n) for n in range(page * 30, min(count, page * 30 + 30))), 30)
    def _known(self, count):
        page = lambda page: (self._entry(n) for n in range(page * 30, min(count, page * 30 + 30)))
        return InAdvancePagedList(page, -(-count // 30), 30)
    def _tabs(self, count):
        videos = OnDemandPagedList(lambda page: (self._entry(n) for n in range(page * 30, min(250, page * 30 + 30))), 30)
        shorts = (self._entry(n) for n in range(251, count))
        return [
            {'_type': 'playlist', 'id': 'v', 'entries': videos, 'webpage_url': 'http://listed.example/v'},
            self._entry(250),
            self.playlist_result([self.playlist_result(shorts, 'b'), self.playlist_result([], 'c')], 'd'),
        ]
    def _tabbed(self, count):
        yield from self._tabs(count)
    def _broken(self, count):
        yield from self._list(count)
        raise ExtractorError('read too far')
    def _stalled(self, count):
        yield from self._list(count)
        import time
        time.sleep(600)
    def _large(self, count):
        for n in range(count):
            yield self._entry(n, description='x' * 200_000 + str(n))
    def _gaps(self, count):
        for n in range(count):
            yield None if n % 3 else {'_type': 'url', 'url': 'ftp://x'} if n % 2 else self._entry(n)
    def _pictures(self, count):
        for n in range(count):
            yield self._entry(n, ie='Listed', video_id=str(n), timestamp=1709287200, thumbnails=[{'url': '/small.jpg'}, {'url': '/large.jpg'}])
`;

describe.skipIf(installed === undefined)(`the entries of a playlist, read by yt-dlp${missing},`, () => {
  let variant: Variant;
  let harness: YtDlpHarness;
  const client = createHttpClient();
  beforeAll(async () => {
    variant = createVariant({ extractors: { listed: extractor } });
    harness = await openHarness({ path: variant.path });
  });
  afterAll(async () => {
    await client.close();
    await harness[Symbol.asyncDispose]();
    variant[Symbol.dispose]();
  });

  /** Reads with a resolver of its own, unless one is given. */
  async function read(name: string, entriesCursor?: string, resolver = createResolver()) {
    return resolver.resolve(new URL(`http://listed.example/${name}`), { signal: never, entriesCursor });
  }

  /** `onStart` is told where each extraction starts. */
  function createResolver(onStart: (entriesStart: number | undefined) => void = () => {}) {
    const ytDlp: YtDlp = {
      ...harness.ytDlp,
      extract(url, options) {
        onStart(options.entriesStart);
        return harness.ytDlp.extract(url, options);
      },
    };
    return createYtDlpResolver({ ytDlp, client });
  }

  /** Reads slice by slice; returns the numbers of the entries, of each slice. */
  async function readAll(name: string, resolver = createResolver()): Promise<number[][]> {
    const slices: number[][] = [];
    let cursor: string | undefined;
    do {
      const { entries = [], entries_next } = await read(name, cursor, resolver);
      slices.push(entries.map(({ url }) => Number(url.split("/").at(-1))));
      cursor = entries_next;
    } while (cursor !== undefined);
    return slices;
  }

  it.each(["list-450", "generator-450", "pages-450", "known-450", "generator-400", "pages-420", "known-201", "list-0"])(
    "are all there, in order, whatever yt-dlp has them in: %s",
    async (name) => {
      const count = Number(name.split("-")[1]);
      const slices = await readAll(name);
      expect(slices.flat()).toEqual(Array.from({ length: count }, (_, n) => n));
      expect(slices).toHaveLength(Math.max(1, Math.ceil(count / 200)));
    },
  );

  it.each(["tabs-450", "tabbed-450"])(
    "are those of the lists in it, such as the tabs of a channel: %s",
    async (name) => {
      const slices = await readAll(name);
      expect(slices.flat()).toEqual(Array.from({ length: 450 }, (_, n) => n));
      expect(slices).toHaveLength(3);
      expect((await read(name)).entries_count).toBeNull();
    },
  );

  it("are all there if there are 10,000, and are walked past some times only", async () => {
    const starts: (number | undefined)[] = [];
    const resolver = createResolver((start) => starts.push(start));
    expect((await readAll("generator-10000", resolver)).flat()).toEqual(Array.from({ length: 10_000 }, (_, n) => n));
    expect(starts.length).toBeLessThan(20);
  });

  it("are read no further than to the one after those that are listed", async () => {
    const { entries, entries_next, entries_count } = await read("broken-201");
    expect(entries).toHaveLength(200);
    expect(entries_count).toBeNull();
    await expect(read("broken-201", entries_next)).rejects.toMatchObject({ code: "upstream_invalid" });
  });

  it("are listed if only those after them cannot be read", async () => {
    const resolver = createResolver();
    const { entries_next } = await read("broken-500", undefined, resolver);
    const { entries, entries_next: last } = await read("broken-500", entries_next, resolver);
    expect(entries).toHaveLength(200);
    await expect(read("broken-500", last, resolver)).rejects.toMatchObject({ code: "upstream_invalid" });
  });

  it("are listed within some seconds if the site stalls on those after them", async () => {
    const info = await harness.ytDlp.extract(new URL("http://listed.example/stalled-450"), {
      signal: never,
      entriesStart: 200,
      entriesAhead: 200,
    });
    expect(info).toMatchObject({ _has_more: true, entries: { length: 249, 0: { title: "Otter 200" } } });
  });

  it("leave memory once they are passed: 2 GB of them before", async () => {
    const url = new URL("http://listed.example/large-10000");
    const info = await harness.ytDlp.extract(url, { signal: never, entriesStart: 9_900 });
    expect(info).toMatchObject({ _has_more: false, entries: { length: 100, 0: { title: "Otter 9900" } } });
  });

  it("keep their place if some have no URL that can be posted", async () => {
    const slices = await readAll("gaps-450");
    expect(slices.flat()).toEqual(Array.from({ length: 75 }, (_, n) => 6 * n));
    expect(slices).toHaveLength(3);
  });

  it("have the best picture, date and duration", async () => {
    const { entries, entries_count } = await read("pictures-3");
    expect(entries_count).toBe(3);
    expect(entries?.[2]).toEqual({
      url: "http://listed.example/video/2",
      video: { extractor: "Listed", id: "2" },
      title: "Otter 2",
      duration: 2,
      thumbnail: "http://listed.example/large.jpg",
      uploaded_at: "2024-03-01T10:00:00Z",
    });
  });
});
