import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { buildApp } from "../http/app.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { localClient } from "../net/client.ts";
import { startUpstream } from "../net/upstream.ts";
import { createSavedClient, jsonLd, pageUrl, resolvePage } from "./page/saved-client.ts";

const player = "https://player.example.org/embed/1";
const film = "https://cdn.example.org/1.mp4";
const video = {
  body: `<title>Player</title><video src="${film}"><track src="/de.vtt" srclang="de"></video>`,
};
const frame = (attributes: string) => `<title>Otters</title><iframe ${attributes}></iframe>`;

describe("the player that a page embeds", () => {
  it.each([
    [
      "og:video:url",
      `<meta property="og:video:url" content="${player}"><meta property="og:video:type" content="text/html">`,
    ],
    ["twitter:player", `<meta name="twitter:player" content="${player}">`],
    ["embedUrl", jsonLd({ "@type": "VideoObject", name: "Otters", embedUrl: player })],
    ["an iframe", frame(`src="${player}" allowfullscreen`)],
    ["a lazy iframe", frame(`data-src="${player}" allow="fullscreen; autoplay"`)],
    ["an iframe that waits for consent", frame(`src="about:blank" data-cmp-src="${player}" allowfullscreen`)],
    ["an iframe of a video's size", frame(`src="https://player.example.org/embed/1" width=640 height=360`)],
  ])("is read too if the page states no medium: %s", async (_, page) => {
    const info = await resolvePage(`<title>Otters</title>${page}`, { [player]: video });
    expect(info).toMatchObject({
      url: pageUrl,
      webpage_url: pageUrl,
      title: "Otters",
      media_type: "video",
      formats: [{ format_id: "https-mp4", url: film }],
      subtitles: { de: [{ url: "https://player.example.org/de.vtt" }] },
      sources: { formats: "html", subtitles: "html" },
    });
  });

  it("adds only what the page itself does not state", async () => {
    const page = jsonLd({
      "@type": "VideoObject",
      name: "Otters",
      duration: "PT61S",
      embedUrl: player,
    });
    const inner = jsonLd({
      "@type": "VideoObject",
      name: "Foxes",
      duration: "PT99S",
      contentUrl: film,
      description: "Foxes.",
    });
    const info = await resolvePage(page, { [player]: { body: inner } });
    expect(info).toMatchObject({
      title: "Otters",
      description: null,
      duration: 61,
      embed: { url: player },
      formats: [{ url: film }],
      sources: { duration: "json-ld", embed: "json-ld", formats: "json-ld" },
    });
  });

  it("adds the duration that the player's data states", async () => {
    const inner = `<script>setup({file: "${film}", duration: 61})</script>`;
    const info = await resolvePage(frame(`src="${player}" allowfullscreen`), {
      [player]: { body: inner },
    });
    expect(info).toMatchObject({
      duration: 61,
      sources: { duration: "player", formats: "player" },
    });
  });

  it("adds its subtitles to those of the page, each file once", async () => {
    const tracks = `<track src="/en.vtt" srclang="en"><track src="https://player.example.org/de.vtt" srclang="de">`;
    const page = `${frame(`src="${player}" allowfullscreen`)}<video src="/texts.mpd">${tracks}</video>`;
    const inner = `<video src="${film}"><track src="/de.vtt" srclang="de"><track src="/fr.vtt" srclang="fr"></video>`;
    const texts = { type: "application/dash+xml", body: '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period/></MPD>' };
    const info = await resolvePage(page, {
      [player]: { body: inner },
      [new URL("/texts.mpd", pageUrl).href]: texts,
    });
    expect(info).toMatchObject({ formats: [{ url: film }], sources: { subtitles: "html" } });
    const listed = Object.entries(info.subtitles).map(([tag, files]) => [tag, ...files.map(({ url }) => url)]);
    expect(listed).toEqual([
      ["en", new URL("/en.vtt", pageUrl).href],
      ["de", "https://player.example.org/de.vtt"],
      ["fr", "https://player.example.org/fr.vtt"],
    ]);
  });

  it("may be a file, whatever vocabulary calls it a player", async () => {
    const file = "https://player.example.org/1.mpeg";
    const page = jsonLd({ "@type": "VideoObject", name: "Otters", embedUrl: file });
    const alone = await resolvePage(page);
    expect(alone).toMatchObject({ embed: { url: file }, formats: [] });
    const info = await resolvePage(page, { [file]: { type: "video/mpeg", body: "" } });
    expect(info).toMatchObject({ title: "Otters", embed: { url: file }, formats: [{ url: file }] });
  });

  it.each([
    ["cannot be reached", new ServiceError("upstream_unreachable", "no")],
    ["is forbidden", new ServiceError("address_blocked", "no")],
    ["is no page", { type: "image/png", body: "x" }],
    ["has no medium", { body: "<title>Empty</title>" }],
  ])("leaves the page's own facts if it %s", async (_, response) => {
    const page = `<meta name="twitter:player" content="${player}"><title>Otters</title>`;
    expect(await resolvePage(page, { [player]: response })).toMatchObject({
      title: "Otters",
      media_type: "video",
      embed: { url: player },
      formats: [],
    });
  });

  it("leaves the page's own facts if it takes too long", async () => {
    const page = createSavedClient({
      [pageUrl]: { body: frame(`src="${player}" allowfullscreen`) },
    });
    const silent: HttpClient = {
      ...page,
      async get(url, options) {
        if (url.href !== player) return page.get(url, options);
        await once(options.signal, "abort");
        throw options.signal.reason;
      },
    };
    const resolver = createPageResolver({ client: silent, pageMaxBytes: 1e6, linkTimeoutMs: 20 });
    const info = await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(info).toMatchObject({ title: "Otters", formats: [] });
  });

  it("may only lead to another player: the facts of the outer pages win", async () => {
    const inner = "https://inner.example.org/embed/2";
    const middle = jsonLd({ "@type": "VideoObject", name: "Player", duration: "PT61S" });
    const info = await resolvePage(frame(`src="${player}" allowfullscreen`), {
      [player]: { body: `${middle}<iframe src="${inner}" allowfullscreen></iframe>` },
      [inner]: { body: `<script>setup({file: "${film}", duration: 99})</script>` },
    });
    expect(info).toMatchObject({
      title: "Otters",
      media_type: "video",
      duration: 61,
      formats: [{ url: film, http_headers: { Referer: "https://inner.example.org/" } }],
      sources: { duration: "json-ld", formats: "player" },
    });
  });

  it("may lead to another player in any frame that it shows", async () => {
    const inner = "https://cdn.example.net/e/2";
    const frames = `<iframe src="https://ads.example.net/1"></iframe><iframe src="https://x.example.net/2" hidden></iframe>
      <iframe src="${inner}" width="100%" height="100%"></iframe>`;
    const info = await resolvePage(frame(`src="${player}" allowfullscreen`), {
      [player]: { body: frames },
      [inner]: video,
    });
    expect(info.formats).toMatchObject([{ url: film }]);
  });

  it("is passed over if it is a manifest that cannot be read", async () => {
    const second = "https://cdn.example.net/e/2";
    const frames = [player, second].map((url) => `<iframe src="${url}" allowfullscreen></iframe>`);
    const info = await resolvePage(frames.join(""), {
      [player]: { type: "application/dash+xml", body: "none" },
      [second]: video,
    });
    expect(info.formats).toMatchObject([{ url: film }]);
  });

  it("is followed to one further player, and no page is read twice", async () => {
    const inner = (n: number) => `https://inner.example.org/embed/${n}`;
    const to = (...urls: string[]) => ({
      body: urls.map((url) => `<iframe src="${url}" allowfullscreen></iframe>`).join(""),
    });
    const client = createSavedClient({
      [pageUrl]: to(player),
      [player]: to(pageUrl, inner(2)),
      [inner(2)]: to(player, inner(3)),
    });
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6 });
    await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(client.requested).toEqual([pageUrl, player, inner(2)]);
  });

  it("is one of two at most, the likeliest first", async () => {
    const client = createSavedClient({
      [pageUrl]: {
        body: `<iframe src="https://a.example/video/1"></iframe><iframe src="https://b.example/x" width=640 height=360></iframe>
          <iframe src="https://c.example/embed/1" allowfullscreen></iframe>`,
      },
    });
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6 });
    await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(client.requested.slice(1)).toEqual(["https://c.example/embed/1", "https://a.example/video/1"]);
  });

  it.each([
    `src="https://ads.example.com/video.html" allowfullscreen`,
    `src="https://cdn.example.com/frame" id="google_ads_iframe_1" width=640 height=360`,
    `src="https://www.tagmanager.example/ns.html?id=1" width=640 height=360`,
    `src="https://consent.example.com/video" allowfullscreen`,
    `src="https://media.example.com/pixel" width=1 height=1`,
    `src="https://player.example.com/1" style="display:none"`,
    `src="https://player.example.com/1" hidden`,
    `src="https://www.example.com/recaptcha/api2/video" width=304 height=178`,
    `src="https://forms.example.com/1"`,
    `src="about:blank" allowfullscreen`,
    `src="/watch/1" allowfullscreen`,
  ])("is not a frame of another kind: %s", async (attributes) => {
    const client = createSavedClient({ [pageUrl]: { body: frame(attributes) } });
    const resolver = createPageResolver({ client, pageMaxBytes: 1e6 });
    await resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal });
    expect(client.requested).toEqual([pageUrl]);
  });

  it("is fetched through the guard: a blocked one is passed over", async () => {
    const site = await startUpstream((request, response) => {
      response.setHeader("content-type", "text/html");
      if (request.url === "/embed/1") response.end(`<video src="/1.mp4"></video>`);
      else
        response.end(
          `<title>Otters</title><meta name="twitter:player" content="http://10.0.0.1/embed/1"><iframe src="/embed/1" allowfullscreen></iframe>`,
        );
    });
    const resolver = createPageResolver({ client: localClient(), pageMaxBytes: 1e6 });
    await using app = await buildApp({ resolver });
    const response = await app.inject({ url: "/info", query: { url: site.url("/watch/1").href } });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({
      title: "Otters",
      formats: [{ url: site.url("/1.mp4").href }],
      sources: { formats: "html" },
    });
  });
});
