import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findMissingFormatsError } from "../../../src/resolvers/ytdlp/failures.ts";
import { never, openHarness, openSite, type Site, type YtDlpHarness } from "./harness.ts";
import { createVariant, installed, missing, type Variant } from "./installed.ts";

/** What an extractor does, and the error that comes of it. */
const cases: readonly {
  does: string;
  code: string;
  retryable?: boolean;
  upstreamStatus?: number;
  /** Limit of the extraction; default one that no machine reaches. */
  timeoutMs?: number;
}[] = [
  { does: "raise ExtractorError('Video unavailable', expected=True)", code: "no_media" },
  {
    does: "raise ExtractorError('No longer available, as the account has been terminated', expected=True)",
    code: "no_media",
  },
  { does: "raise ExtractorError('X said: gone for good', expected=True)", code: "no_media" },
  { does: "raise ExtractorError('This video is private', expected=True)", code: "login_required" },
  { does: "raise ExtractorError('Sign in to confirm you’re not a bot', expected=True)", code: "login_required" },
  { does: "raise ExtractorError('Sign in to confirm your age', expected=True)", code: "login_required" },
  { does: "self.raise_login_required()", code: "login_required" },
  { does: "self.raise_geo_restricted(countries=['NO'])", code: "geo_restricted" },
  { does: "raise ExtractorError('Not available in your country', expected=True)", code: "geo_restricted" },
  { does: "raise UserNotLive(video_id='x')", code: "live_stream" },
  { does: "raise ExtractorError('This video is DRM protected', expected=True)", code: "drm_protected" },
  { does: "raise UnsupportedError(url)", code: "no_media" },
  { does: "raise KeyError('SECRET')", code: "upstream_invalid" },
  { does: "raise ExtractorError('Unable to extract SECRET')", code: "upstream_invalid" },
  { does: "self._search_regex(r'x(y)', 'SECRET', 'player')", code: "upstream_invalid" },
  { does: "self._parse_json('SECRET', 'x')", code: "upstream_invalid" },
  {
    does: "self._download_webpage(SITE + '/404', 'x')",
    code: "upstream_status",
    retryable: false,
    upstreamStatus: 404,
  },
  { does: "self._download_webpage(SITE + '/503', 'x')", code: "upstream_status", retryable: true, upstreamStatus: 503 },
  { does: "self._download_webpage(SITE + '/429', 'x')", code: "upstream_status", retryable: true, upstreamStatus: 429 },
  {
    does: "self._download_webpage(SITE + '/451', 'x')",
    code: "upstream_status",
    retryable: false,
    upstreamStatus: 451,
  },
  { does: "self._download_webpage(SITE + '/cut', 'x')", code: "upstream_unreachable", retryable: true },
  { does: "self._download_webpage(SITE.replace('http:', 'https:'), 'x')", code: "upstream_unreachable" },
  { does: "self._download_webpage('http://missing.example/', 'x')", code: "upstream_unreachable", retryable: false },
  { does: "self._download_webpage('http://10.0.0.1/', 'x')", code: "address_blocked" },
  { does: "raise TransportError(cause=TimeoutError('SECRET'))", code: "upstream_timeout" },
  { does: "while True: pass", code: "upstream_timeout", timeoutMs: 1_000 },
  { does: "x = bytearray(2 << 30)", code: "upstream_invalid" },
  { does: "import os; os.abort()", code: "upstream_invalid" },
  { does: "import os; os._exit(0)", code: "upstream_invalid" },
  { does: "import os; os.write(3, b'SECRET'); os._exit(0)", code: "upstream_invalid" },
  { does: "import os; os.write(3, b'{\"failure\": 1}'); os._exit(0)", code: "upstream_invalid" },
  { does: "raise SystemExit('SECRET')", code: "upstream_invalid" },
];

/** Records without formats, and why a task on them fails. */
const records: readonly { does: string; code: string | undefined }[] = [
  { does: "self.report_drm('x'); return {'id': 'x', 'title': 'A', 'formats': []}", code: "drm_protected" },
  {
    does: "return {'id': 'x', 'title': 'A', 'formats': [{'url': 'http://a.example/a.mp4', 'has_drm': True}]}",
    code: "drm_protected",
  },
  {
    does: "self.raise_login_required(metadata_available=True); return {'id': 'x', 'title': 'A', 'formats': []}",
    code: "login_required",
  },
  {
    does: "self.raise_geo_restricted(metadata_available=True); return {'id': 'x', 'title': 'A', 'formats': []}",
    code: "geo_restricted",
  },
  { does: "return {'id': 'x', 'title': 'A', 'live_status': 'is_upcoming', 'formats': []}", code: "live_stream" },
  { does: "return {'id': 'x', 'title': 'A', 'formats': []}", code: "no_media" },
  { does: "return {'id': 'x', 'title': 'A', 'url': 'http://a.example/a.mp4'}", code: undefined },
];

const source = (site: Site) => `
from .common import InfoExtractor
from ..networking.exceptions import TransportError
from ..utils import ExtractorError, UnsupportedError, UserNotLive
SITE = ${JSON.stringify(site.origin)}
CASES = ${JSON.stringify([...cases, ...records].map(({ does }) => does))}
__all__ = ['FaultIE']
class FaultIE(InfoExtractor):
    _VALID_URL = r'https?://fault\\.example/(?P<id>\\d+)'
    def _real_extract(self, url):
        names = {**globals(), 'self': self, 'url': url}
        code = CASES[int(self._match_id(url))].split('return ')
        exec(code[0], names)
        return eval(code[1], names) if len(code) > 1 else {'id': 'x', 'title': 'no error'}
`;

describe.skipIf(installed === undefined)(`a failure of yt-dlp${missing}`, () => {
  let site: Site;
  let variant: Variant;
  let harness: YtDlpHarness;

  beforeAll(async () => {
    site = await openSite((request, response) => {
      if (request.url === "/cut") request.socket.destroy();
      else response.writeHead(Number(request.url?.slice(1)) || 200).end("SECRET");
    });
    variant = createVariant({ extractors: { fault: source(site) } });
    harness = await open();
  });

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
    variant[Symbol.dispose]();
  });

  /** Starts yt-dlp; resolves once it has loaded. */
  async function open(limits: { timeoutMs?: number } = {}): Promise<YtDlpHarness> {
    const opened = await openHarness({ path: variant.path, lookup: async () => [], ...limits });
    await opened.ytDlp.findExtractor(new URL(site.origin), never);
    return opened;
  }

  const extract = (index: number, { ytDlp } = harness) =>
    ytDlp.extract(new URL(`http://fault.example/${index}`), { signal: never });

  it.each(cases.map((each, index) => ({ ...each, index })))(
    "is $code: $does",
    async ({ index, code, retryable, upstreamStatus, timeoutMs }) => {
      await using impatient = timeoutMs === undefined ? null : await open({ timeoutMs });
      const error: unknown = await extract(index, impatient ?? harness).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code,
        ...(retryable !== undefined && { retryable }),
        ...(upstreamStatus !== undefined && { upstreamStatus }),
      });
      expect(String(error)).not.toMatch(/SECRET|gone for good/);
    },
  );

  it.each(records.map((each, index) => ({ ...each, index: cases.length + index })))(
    "that leaves no formats is $code: $does",
    async ({ index, code }) => {
      const info = await extract(index);
      expect(info).toMatchObject({ title: "A" });
      expect(findMissingFormatsError(info, "yt-dlp")?.code).toBe(code);
    },
  );
});
