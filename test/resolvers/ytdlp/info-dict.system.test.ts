import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DownloadFormat } from "../../../src/model/page-info.ts";
import { createHttpClient } from "../../../src/net/http/http-client.ts";
import { createYtDlpResolver } from "../page/local-reader.ts";
import { never, openHarness, type YtDlpHarness } from "./harness.ts";
import { createVariant, installed, missing, type Variant } from "./installed.ts";

const extractor = `
from .common import InfoExtractor
__all__ = ['ToldIE']
class ToldIE(InfoExtractor):
    _VALID_URL = r'https?://told\\.example/(?P<id>\\w+)'
    def _real_extract(self, url):
        hostile = {
            'lists': lambda: '[' * 110_000 + ']' * 110_000,
            'numbers': lambda: '[' + '1,' * 110_000 + '1]',
            'names': lambda: '{' + ','.join(f'"{n}":1' for n in range(110_000)) + '}',
        }.get(self._match_id(url))
        if hostile:
            __import__('json').dumps = lambda *_, **__: '{"info":' + hostile() + '}'
        if self._match_id(url) == 'single':
            self.report_warning('Sign in to watch this video')
            return self.playlist_result([{'id': 'x', 'title': 'A', 'formats': []}], 'p', 'P')
        if self._match_id(url) == 'fragments':
            parts = [{'path': f'{n}.m4s', **({'duration': 4.5} if n else {})} for n in range(300_000)]
            folder = {'url': 'http://told.example/parts/', 'fragment_base_url': 'http://told.example/parts/'}
            return {'id': 'x', 'title': 'A', 'formats': [
                {'format_id': 'f', **folder, 'ext': 'mp4', 'protocol': 'http_dash_segments', 'fragments': parts}]}
        return {
            'id': 'x', 'title': 'A',
            'formats': [{'format_id': 'a', 'url': 'http://told.example/a.mp4', 'ext': 'mp4', 'filesize_approx': 2000}],
            **({'description': '[{,' * 33_333, 'uploader': ',"\\\\' * 33_333} if self._match_id(url) == 'marks' else {}),
            'subtitles': {'en': [{'url': f'http://told.example/{n}.vtt', 'ext': 'vtt', 'name': str(n)} for n in range(25)]},
        }
`;

describe.skipIf(installed === undefined)(`what an extractor of yt-dlp tells${missing}`, () => {
  let variant: Variant;
  let harness: YtDlpHarness;
  beforeAll(async () => {
    variant = createVariant({ extractors: { told: extractor } });
    harness = await openHarness({ path: variant.path });
  });
  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
    variant[Symbol.dispose]();
  });

  async function resolve(name: string, forDownload = false) {
    const client = createHttpClient();
    try {
      const resolver = createYtDlpResolver({ ytDlp: harness.ytDlp, client });
      const url = new URL(`http://told.example/${name}`);
      return await resolver.resolve(url, { signal: never, forDownload });
    } finally {
      await client.close();
    }
  }

  it("arrives: the estimated size of a format, and the best subtitles, which it lists last", async () => {
    const { formats, subtitles } = await resolve("video");
    expect(formats).toMatchObject([{ filesize: null, filesize_approx: 2000 }]);
    const names = Array.from({ length: 20 }, (_, n) => `${24 - n}`);
    expect(subtitles["en"]?.map(({ name }) => name)).toEqual(names);
  });

  it.each(["lists", "numbers", "names"])(
    "is refused before it is parsed if code that has taken over the extraction sends many %s",
    async (what) => {
      await expect(resolve(what)).rejects.toMatchObject({
        code: "upstream_invalid",
        message: expect.stringContaining("the info dict is too large"),
      });
    },
  );

  it("arrives if its texts have many marks of JSON", async () => {
    expect((await resolve("marks")).description).toMatch(/^(?:\[\{,)+/);
  });

  it("arrives: hundreds of thousands of fragments, in their order", async () => {
    const { formats } = await resolve("fragments", true);
    const [{ fragments = [] } = {}] = formats as DownloadFormat[];
    expect(fragments).toHaveLength(300_000);
    expect([fragments[0], fragments.at(-1)]).toEqual([
      { url: "http://told.example/parts/0.m4s", duration: null },
      { url: "http://told.example/parts/299999.m4s", duration: 4.5 },
    ]);
  });

  it("arrives: the reason why the only video of a playlist has no formats", async () => {
    await expect(resolve("single", true)).rejects.toMatchObject({ code: "login_required" });
  });
});
