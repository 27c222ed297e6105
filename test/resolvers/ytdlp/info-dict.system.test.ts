import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
        if self._match_id(url) == 'nested':
            __import__('json').dumps = lambda *_, **__: '{"info":' + '[' * 700_000 + ']' * 700_000 + '}'
        if self._match_id(url) == 'single':
            self.report_warning('Sign in to watch this video')
            return self.playlist_result([{'id': 'x', 'title': 'A', 'formats': []}], 'p', 'P')
        return {
            'id': 'x', 'title': 'A',
            'formats': [{'format_id': 'a', 'url': 'http://told.example/a.mp4', 'ext': 'mp4', 'filesize_approx': 2000}],
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

  it("is refused before it is parsed if code that has taken over the extraction sends lists in lists", async () => {
    await expect(resolve("nested")).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("the info dict is too large"),
    });
  });

  it("arrives: the reason why the only video of a playlist has no formats", async () => {
    await expect(resolve("single", true)).rejects.toMatchObject({ code: "login_required" });
  });
});
