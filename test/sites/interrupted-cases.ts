import { media, servePage, type SiteCase } from "./site-case.ts";

/** Bytes after which the site stops: less than half of the file. */
const cutBytes = 20_000;

/** Sites that send a file in pieces only. */
export const interruptedCases: readonly SiteCase[] = [
  {
    name: "a file whose every response is cut off",
    media: media.mp4,
    prepare(site, { entry }) {
      servePage(site, "watch", { body: `<video src="${site.url(entry)}"></video>` });
      const { body } = site.resources.get(entry)!;
      site.answer(entry, (response, _serve, { headers }) => {
        const start = Number(/^bytes=(\d+)-/.exec(headers.range ?? "")?.[1] ?? 0);
        const common = { "content-type": "video/mp4", etag: '"film"', "accept-ranges": "bytes" };
        const range = { "content-range": `bytes ${start}-${body.length - 1}/${body.length}` };
        const length = { "content-length": body.length - start };
        response.writeHead(start === 0 ? 200 : 206, {
          ...common,
          ...length,
          ...(start > 0 && range),
        });
        const isLast = start + cutBytes >= body.length;
        response.write(body.subarray(start, start + cutBytes), () => {
          if (isLast) response.end();
          else response.destroy();
        });
      });
    },
  },
];
