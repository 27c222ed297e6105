import type { IncomingMessage } from "node:http";
import type { MediaFixture } from "../media/media-fixtures.ts";
import { resource } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { media, pageOf, servePage, type SiteCase } from "./site-case.ts";

const iframe = (url: string) => ({
  body: `<iframe src="${url}" width="640" height="360" allowfullscreen></iframe>`,
});
const videoPage = (url: string) => ({ body: `<video controls src="${url}"></video>` });

/** Sites that serve their media only to requests like a browser's. */
export const demandCases: readonly SiteCase[] = [
  {
    name: "Referer demanded of a file",
    media: media.mp4,
    prepare(site, fixture) {
      servePage(site, "watch", videoPage(site.url(fixture.entry)));
      demand(site, fixture, comesFrom(site));
    },
  },
  {
    name: "Referer demanded of each segment of HLS",
    media: media.hls,
    prepare(site, fixture) {
      servePage(site, "watch", videoPage(site.url(fixture.entry)));
      demand(site, fixture, comesFrom(site));
    },
  },
  {
    name: "a cookie demanded that the page has set",
    media: media.mp4,
    prepare(site, fixture) {
      setCookie(site, fixture, "session=abc; Path=/; HttpOnly");
      demand(site, fixture, hasCookie("session", "abc"));
    },
  },
  {
    name: "a cookie demanded of each segment of HLS",
    media: media.hls,
    prepare(site, fixture) {
      setCookie(site, fixture, "session=abc; Path=/");
      demand(site, fixture, hasCookie("session", "abc"));
    },
  },
  {
    name: "the Referer of the embedded player demanded",
    media: media.hls,
    prepare(site, fixture) {
      servePage(site, "watch", iframe(site.url("embed/film")));
      servePage(site, "embed/film", videoPage(site.url(fixture.entry)));
      demand(site, fixture, ({ headers }) => headers.referer === site.url("embed/film"));
    },
  },
  {
    name: "the Referer of the page after a redirect demanded",
    media: media.mp4,
    prepare(site, fixture) {
      site.answer("watch", (response) => response.writeHead(302, { location: "/films/1" }).end());
      servePage(site, "films/1", videoPage(site.url(fixture.entry)));
      demand(site, fixture, ({ headers }) => headers.referer === site.url("films/1"));
    },
  },
  {
    name: "a cookie demanded of the page itself, which redirects until it is there",
    media: media.mp4,
    prepare(site, fixture) {
      servePage(site, "watch", videoPage(site.url(fixture.entry)));
      const isKnown = hasCookie("seen", "1");
      site.answer("watch", (response, serve, request) =>
        isKnown(request)
          ? serve()
          : response.writeHead(302, { location: "/watch", "set-cookie": "seen=1; Path=/" }).end(),
      );
      demand(site, fixture, isKnown);
    },
  },
  {
    name: "a cookie demanded that the embedded player has set",
    media: media.hls,
    prepare(site, fixture) {
      servePage(site, "watch", iframe(site.url("embed/film")));
      setCookie(site, fixture, "session=abc; Path=/", "embed/film");
      demand(site, fixture, hasCookie("session", "abc"));
    },
  },
  {
    name: "a cookie demanded that the manifest has set",
    media: media.hls,
    prepare(site, fixture) {
      servePage(site, "watch", videoPage(site.url(fixture.entry)));
      demand(site, fixture, hasCookie("token", "1"));
      site.answer(fixture.entry, (response, serve) => {
        response.setHeader("set-cookie", "token=1; Path=/");
        return serve();
      });
    },
  },
  {
    name: "a browser's User-Agent demanded",
    media: media.mp4,
    prepare(site, fixture) {
      servePage(site, "watch", videoPage(site.url(fixture.entry)));
      demand(site, fixture, ({ headers }) => (headers["user-agent"] ?? "").startsWith("Mozilla/5.0 "));
    },
  },
  {
    name: "an address that has expired at once",
    media: media.mp4,
    prepare: (site, fixture) => expire(site, fixture, { status: 410, sentBytes: 0 }),
  },
  {
    name: "an address that expires in the middle",
    media: media.mp4,
    prepare: (site, fixture) => expire(site, fixture, { status: 403, sentBytes: 20_000 }),
  },
];

type Holds = (request: IncomingMessage) => boolean;

/** Whether the request's Referer is a page of the site, or its origin. */
const comesFrom =
  (site: Site): Holds =>
  ({ headers }) =>
    [site.url(""), site.url("watch")].includes(headers.referer ?? "");

/** Whether the request has a cookie. */
const hasCookie =
  (name: string, value: string): Holds =>
  ({ headers }) =>
    (headers.cookie ?? "").split("; ").includes(`${name}=${value}`);

/** Answers requests for the medium with 403 unless `holds`. */
function demand(site: Site, { resources }: MediaFixture, holds: Holds): void {
  for (const path of resources.keys()) {
    site.answer(path, (response, serve, request) => (holds(request) ? serve() : response.writeHead(403).end()));
  }
}

/** Serves a page with the medium that sets a cookie. */
function setCookie(site: Site, { entry }: MediaFixture, cookie: string, path = "watch"): void {
  site.answer(path, (response) =>
    response
      .writeHead(200, { "content-type": "text/html", "set-cookie": cookie })
      .end(pageOf(videoPage(site.url(entry)))),
  );
}

/**
 * Makes each reading of the page name another address of the file. The first serves `sentBytes`, is cut off
 * and then answers with `status`; the later ones serve the file.
 */
function expire(
  site: Site,
  { entry }: MediaFixture,
  { status, sentBytes }: { status: number; sentBytes: number },
): void {
  const { type, body } = site.resources.get(entry)!;
  let readings = 0;
  site.answer("watch", (response) => {
    readings += 1;
    const path = `film-${readings}.mp4`;
    if (readings > 1) site.resources.set(path, resource(type, body));
    response.writeHead(200, { "content-type": "text/html" }).end(pageOf(videoPage(site.url(path))));
  });
  let isUsed = sentBytes === 0;
  site.answer("film-1.mp4", (response, _serve, { method }) => {
    if (isUsed || method !== "GET") return response.writeHead(status).end();
    isUsed = true;
    response.writeHead(200, {
      "content-type": type,
      "content-length": body.length,
      etag: '"film"',
      "accept-ranges": "bytes",
    });
    return response.write(body.subarray(0, sentBytes), () => response.destroy());
  });
}
