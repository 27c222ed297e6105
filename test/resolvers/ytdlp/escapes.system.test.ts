import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Canary,
  never,
  openCanary,
  openHarness,
  openSite,
  sendPage,
  type Site,
  type YtDlpHarness,
} from "./harness.ts";
import { createVariant, installed, missing, pythonPath, type Variant } from "./installed.ts";
import { pythonWithout } from "./kernels.ts";

/** Ways that the code of an extractor could take past the proxy; each ends by raising or returning. */
const ways: Readonly<Record<string, string>> = {
  socket: "import socket; socket.create_connection((HOST, PORT), 2)",
  socket_by_name: "import socket; socket.create_connection(('localhost', PORT), 2)",
  lookup: "import socket; socket.getaddrinfo('canary.example', 80)",
  datagram: "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (HOST, PORT))",
  urllib: "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open(URL, timeout=2)",
  no_proxy: "import os; os.environ['no_proxy'] = '*'; self._download_webpage(URL, 'x')",
  noproxy_header: "self._download_webpage(URL, 'x', headers={'Ytdl-request-proxy': '__noproxy__'})",
  proxies: "from yt_dlp.networking import Request; self._request_webpage(Request(URL, proxies={'all': None}), 'x')",
  websocket: "self._request_webpage(URL.replace('http:', 'ws:'), 'x')",
  other_proxy:
    "from yt_dlp.networking import Request; self._request_webpage(Request('http://127.0.0.1:1/', proxies={'all': URL}), 'x')",
  socks:
    "from yt_dlp.networking import Request; self._request_webpage(Request('http://127.0.0.1:1/', proxies={'all': f'socks5://{HOST}:{PORT}'}), 'x')",
  shell: "import subprocess; subprocess.run(['/bin/bash', '-c', f'exec 3<>/dev/tcp/{HOST}/{PORT}'])",
  system: "import os; os.system(f'/bin/bash -c \"exec 3<>/dev/tcp/{HOST}/{PORT}\"')",
  exec: "import os; os.execv('/bin/bash', ['bash', '-c', f'exec 3<>/dev/tcp/{HOST}/{PORT}'])",
  spawn: "import os; os.posix_spawn('/bin/bash', ['bash', '-c', f'exec 3<>/dev/tcp/{HOST}/{PORT}'], {})",
  node: "import subprocess; subprocess.run([NODE, '-e', f'fetch({URL!r}).catch(() => {{}})'])",
  listen: "import socket; s = socket.socket(); s.bind((HOST, 0)); print(s.getsockname())",
  read: "self._download_webpage('file:///etc/passwd', 'x')",
  write: "open(FILE, 'w').close()",
  mkdir: "import os; os.mkdir(FILE)",
};
/** Scripts of sites run in Node, in which they may do nothing. */
const scriptWays: Readonly<Record<string, string>> = {
  script: "import subprocess; subprocess.run([NODE, '--permission', '-'], input=f'fetch({URL!r})'.encode())",
};
const runNode = (script: string) =>
  `import subprocess; r = subprocess.run([NODE, '--version'], capture_output=True); assert r.stdout.startswith(b'v'), r; r = subprocess.run([NODE, '--permission', '-'], input=b'${script}', capture_output=True); raise Exception((r.returncode, r.stdout, r.stderr))`;
const scripts: Readonly<Record<string, string>> = {
  script_result: runNode("console.log(6 * 7)"),
  thread:
    "import threading; found = []; t = threading.Thread(target=lambda: found.append('done')); t.start(); t.join(); raise Exception(found)",
  threads_in_turn:
    "import threading\nfor _ in range(300):\n  t = threading.Thread(target=lambda: None); t.start(); t.join()",
  threads_at_once:
    "import threading; end = threading.Event(); started = 0\ntry:\n  for _ in range(300): threading.Thread(target=end.wait).start(); started += 1\nexcept RuntimeError: pass\nend.set(); raise Exception(started)",
  endless:
    "import socket; from urllib.parse import urlsplit as u; proxy = ('127.0.0.1', u(self.get_param('proxy')).port)\nwhile True: socket.create_connection(proxy, 5).close()",
  descriptors_on_the_way:
    "import json, socket\nserver = socket.socket(fileno=4); command = json.dumps([NODE, '--permission', '-']).encode()\nwhile True:\n  try:\n    socket.send_fds(server, [command], [0] * 3)\n    for _ in range(3): socket.send_fds(server, [b' '], [0] * 250)\n  except OSError: pass",
  script_failure: runNode("console.error(`no`); process.exitCode = 7"),
};
/** What code can do only past Python's own checks; the kernel stops it. */
const nativeWays: Readonly<Record<string, string>> = {
  native_connect:
    "import ctypes, struct, socket as s; libc = LIBC; f = libc.socket(2, 1, 0); r = libc.connect(f, struct.pack('=H', 2) + struct.pack('>H', PORT) + s.inet_aton(HOST) + bytes(8), 16)",
};

const source = (canary: Canary, file: string) => `
import ctypes
from .common import InfoExtractor
LIBC = ctypes.CDLL(None)
HOST, PORT, URL, FILE, NODE = '127.0.0.2', ${canary.port}, 'http://${canary.host}/', ${JSON.stringify(file)}, ${JSON.stringify(process.execPath)}
WAYS = ${JSON.stringify({ ...ways, ...scriptWays, ...scripts, ...nativeWays })}
__all__ = ['EscapeIE']
class EscapeIE(InfoExtractor):
    _VALID_URL = r'https?://escape\\.example/(?P<id>\\w+)'
    def _real_extract(self, url):
        way = self._match_id(url)
        try:
            exec(WAYS[way], {**globals(), 'self': self})
            outcome = 'done'
        except BaseException as error:
            outcome = type(error).__name__ + ': ' + str(error)
        return {'id': way, 'title': outcome, 'formats': []}
`;

const kernels = [
  { kernel: "with Landlock", hasLandlock: true },
  { kernel: "without Landlock", hasLandlock: false },
];

describe.skipIf(installed === undefined || process.platform !== "linux").each(kernels)(
  `yt-dlp $kernel${missing}`,
  ({ hasLandlock }) => {
    let canary: Canary;
    let site: Site;
    let variant: Variant;
    let harness: YtDlpHarness;
    let folder: string;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "escapes-"));
      mkdirSync(join(folder, "bin"));
      const interpreter = join(folder, "bin/python3");
      writeFileSync(interpreter, pythonWithout(pythonPath(), "landlock"), { mode: 0o755 });
      canary = await openCanary();
      site = await openSite((request, response) => respond(request.url ?? "", response));
      variant = createVariant({
        ...(!hasLandlock && { interpreter }),
        extractors: { escape: source(canary, join(folder, "written")) },
      });
      // What a proxy's user sets so that local hosts are reached without it.
      process.env["no_proxy"] = "*";
      harness = await openHarness({
        path: variant.path,
        lookup: async (name) =>
          name === "two.example"
            ? [
                { address: "127.0.0.1", family: 4 },
                { address: "127.0.0.2", family: 4 },
              ]
            : [{ address: "127.0.0.2", family: 4 }],
      });
    });

    afterAll(async () => {
      delete process.env["no_proxy"];
      await harness[Symbol.asyncDispose]();
      await site[Symbol.asyncDispose]();
      await canary[Symbol.asyncDispose]();
      variant[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    });

    function respond(path: string, response: Parameters<typeof sendPage>[0]): void {
      const away = `http://${canary.host}`;
      if (path === "/redirect") response.writeHead(302, { location: `${away}/` }).end();
      else if (path === "/smuggled") {
        const data = encodeURIComponent(JSON.stringify({ http_headers: { "Ytdl-request-proxy": "__noproxy__" } }));
        const location = `${away}/v.mp4#__youtubedl_smuggle=${data}`;
        response.writeHead(302, { location }).end();
      } else if (path === "/page") {
        sendPage(
          response,
          `<title>A</title><meta property="og:image" content="${away}/thumbnail.jpg">
          <link rel="alternate" type="application/json+oembed" href="${away}/oembed">
          <video poster="${away}/poster.jpg"><source src="/list.m3u8" type="application/x-mpegurl">
          <source src="${away}/v.mp4"><track kind="subtitles" srclang="en" src="${away}/en.vtt"></video>`,
        );
      } else if (path === "/list.m3u8") {
        response
          .setHeader("content-type", "application/vnd.apple.mpegurl")
          .end(
            `#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI="${away}/key"\n#EXTINF:4,\n${away}/segment.ts\n#EXT-X-ENDLIST\n`,
          );
      } else response.writeHead(404).end();
    }

    const extract = (url: string) =>
      harness.ytDlp.extract(new URL(url), { signal: never }) as Promise<Record<string, unknown>>;

    it("says in the log if the kernel does not help", () => {
      const unenforced = [
        "yt-dlp may read other files",
        "yt-dlp may, while it is loaded, open TCP connections past the proxy",
      ];
      const warnings = harness.log.filter((line) => "unenforced" in line);
      expect(warnings).toEqual(
        hasLandlock ? [] : [expect.objectContaining({ landlock: 0, seccomp: true, unenforced })],
      );
      expect(harness.ytDlp.unenforced).toEqual(hasLandlock ? [] : unenforced);
    });

    it.each(Object.keys(ways))("reaches nothing but the proxy by %s", async (way) => {
      const { title } = await extract(`http://escape.example/${way}`);
      expect(title).not.toBe("done");
      expect(canary.connections).toBe(0);
      expect(existsSync(join(folder, "written"))).toBe(false);
    });

    it.each(Object.keys(scriptWays))("nor by a site's %s", async (way) => {
      const { title } = await extract(`http://escape.example/${way}`);
      expect(title).toBe("done");
      expect(canary.connections).toBe(0);
    });

    it("runs a site's script, and says how it ended", async () => {
      const { title } = await extract("http://escape.example/script_result");
      expect(title).toBe("Exception: (0, b'42\\n', b'')");
      const { title: failed } = await extract("http://escape.example/script_failure");
      expect(failed).toMatch(/^Exception: \(7, b'', b'no\\n'\)$/);
    });

    it("lets libraries start threads, as that for browsers' TLS does", async () => {
      const { title } = await extract("http://escape.example/thread");
      expect(title).toBe("Exception: ['done']");
    });

    it("has 16 threads at a time, as each takes a share of the processors", async () => {
      const { title: atOnce } = await extract("http://escape.example/threads_at_once");
      expect(atOnce).toBe("Exception: 16");
      const { title: inTurn } = await extract("http://escape.example/threads_in_turn");
      expect(inTurn).toBe("done");
    });

    it("is ended if it connects without end, however short the connections are", async () => {
      await expect(extract("http://escape.example/endless")).rejects.toThrow(/SIGKILL|signal 9|killed/);
    });

    it(
      "keeps nobody from starting by sending descriptors faster than they are received",
      { timeout: 120_000 },
      async () => {
        const attack = new AbortController();
        const url = new URL("http://escape.example/descriptors_on_the_way");
        async function attackOn() {
          while (!attack.signal.aborted) await harness.ytDlp.extract(url, { signal: attack.signal }).catch(() => {});
        }
        const attacking = attackOn();
        const outcomes = new Set<unknown>();
        for (let number = 0; number < 4; number += 1) {
          for (const way of ["thread", "script_result"]) {
            outcomes.add(await extract(`http://escape.example/${way}`).then(({ title }) => title, String));
          }
        }
        attack.abort();
        await attacking;
        expect(outcomes).toEqual(new Set(["Exception: ['done']", "Exception: (0, b'42\\n', b'')"]));
      },
    );

    it.each(Object.keys(nativeWays))("nor past Python by %s", async (way) => {
      await extract(`http://escape.example/${way}`).catch(() => {});
      expect(canary.connections).toBe(0);
    });

    it("sends no datagram", async () => {
      const receiver = createSocket("udp4");
      let received = 0;
      receiver.on("message", () => (received += 1)).bind(canary.port, "127.0.0.2");
      await once(receiver, "listening");
      await extract("http://escape.example/datagram");
      receiver.close();
      expect(received).toBe(0);
    });

    it.each(["/redirect", "/smuggled"])("follows %s only as far as the guard allows", async (path) => {
      await expect(extract(site.origin + path)).rejects.toMatchObject({ code: "address_blocked" });
      expect(canary.connections).toBe(0);
    });

    it.each(["http://127.0.0.2:PORT/", "http://two.example:PORT/", "http://other.example:PORT/"])(
      "has the guard decide about %s",
      async (url) => {
        await expect(extract(url.replace("PORT", `${canary.port}`))).rejects.toMatchObject({
          code: "address_blocked",
        });
        expect(canary.connections).toBe(0);
      },
    );

    it("asks for nothing that a page leads to but by the proxy", async () => {
      const info = await extract(`${site.origin}/page`);
      expect(JSON.stringify(info["formats"])).toContain("/list.m3u8");
      expect(canary.connections).toBe(0);
    });

    it("ignores what is smuggled in the fragment of the URL asked for", async () => {
      const data = encodeURIComponent(JSON.stringify({ http_headers: { "Ytdl-request-proxy": "__noproxy__" } }));
      const url = `http://${canary.host}/v.mp4#__youtubedl_smuggle=${data}`;
      await expect(extract(url)).rejects.toMatchObject({ code: "address_blocked" });
      expect(canary.connections).toBe(0);
    });
  },
);
