import { expect, test } from "vitest";
import { createResource } from "../../../../src/resolvers/page/metadata.ts";
import { extractOembed } from "../../../../src/resolvers/page/vocabularies/oembed.ts";

const url = new URL("https://video.example.com/oembed?url=x");
const json = (value: unknown) => extractOembed(JSON.stringify(value), "application/json", url);

const stated = {
  version: "1.0",
  type: "video",
  title: "Heron at dawn",
  author_name: "Ada",
  author_url: "https://video.example.com/ada",
  provider_name: "Example",
  thumbnail_url: "https://img.example.com/1.jpg",
  thumbnail_width: 640,
  thumbnail_height: "360",
  width: 1280,
  height: 720,
  duration: 61.5,
  html: '<div>x</div><iframe src="//player.example.com/e/1?a=1&amp;b=2" width="5"></iframe><iframe src="https://other.example"></iframe>',
};

const expected = {
  site_name: "Example",
  title: "Heron at dawn",
  duration: 61.5,
  uploader: "Ada",
  uploader_url: "https://video.example.com/ada",
  thumbnails: [{ url: "https://img.example.com/1.jpg", width: 640, height: 360 }],
  resources: [
    createResource(new URL("https://player.example.com/e/1?a=1&b=2"), "player", {
      width: 1280,
      height: 720,
    }),
  ],
  media_type: "video",
};

test("JSON and XML are parsed alike", () => {
  const escaped = (value: string | number) => String(value).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const children = Object.entries(stated).map(([name, value]) => `<${name}>${escaped(value)}</${name}>`);
  const xml = `<?xml version="1.0" encoding="utf-8"?>\n<oembed>${children.join("\n")}</oembed>`;
  expect(json(stated)).toEqual(expected);
  expect(extractOembed(xml, "text/xml", url)).toEqual(expected);
});

test("the first character decides on the format, not the content type", () => {
  expect(extractOembed(`\uFEFF ${JSON.stringify(stated)}`, "text/xml", url)).toEqual(expected);
  const xml = "<oembed><type>link</type><title>Heron</title></oembed>";
  expect(extractOembed(xml, null, url)).toMatchObject({ media_type: null, title: "Heron" });
});

test("invalid fields are null", () => {
  expect(
    json({
      type: "Video ",
      title: { text: "no" },
      author_name: "  ",
      author_url: "javascript:alert(1)",
      thumbnail_url: "data:image/png;base64,AA",
      html: '<iframe src="file:///etc/passwd"></iframe>',
      duration: -1,
      ["__proto__"]: { title: "polluted" },
    }),
  ).toEqual({
    site_name: null,
    title: null,
    duration: null,
    uploader: null,
    uploader_url: null,
    thumbnails: [],
    resources: [],
    media_type: "video",
  });
});

test.each(["rich", "photo", "link", "film", 1, undefined])(
  "a response of type %j has no player and is no video",
  (type) => {
    expect(json({ ...stated, type })).toEqual({ ...expected, resources: [], media_type: null });
  },
);

test("the iframe's own size counts if the response states none", () => {
  const html = "<iframe width='560' height='100%' src='/embed/1'></iframe>";
  expect(json({ type: "video", html }).resources).toEqual([
    createResource(new URL("https://video.example.com/embed/1"), "player", { width: 560 }),
  ]);
});

test("entities are decoded once", () => {
  const html = '<iframe src="/e?q=%26&amp;amp;r=1"></iframe>';
  const [player] = json({ type: "video", html }).resources ?? [];
  expect(player?.url.href).toBe("https://video.example.com/e?q=%26&amp;r=1");
});

test.each(["", "null", "[]", '"text"', "{", "<html></html>", "Not found", "<oembed", "1"])(
  "what is neither a JSON object nor an oembed element is refused: %s",
  (text) => {
    for (const contentType of ["application/json", "text/xml", null]) {
      expect(() => extractOembed(text, contentType, url)).toThrow(
        expect.objectContaining({ name: "ServiceError", code: "upstream_invalid" }),
      );
    }
  },
);

test("no more than a thousand fields of XML are read", () => {
  const fields = (count: number) => Array.from({ length: count }, (_, n) => `<f${n}>a</f${n}>`).join("");
  const titleAfter = (count: number) =>
    extractOembed(`<oembed>${fields(count)}<title>Otters</title></oembed>`, null, url);
  expect(titleAfter(900).title).toBe("Otters");
  expect(titleAfter(2_000).title).toBeNull();
});

test("the iframe is looked for among no more than a thousand attributes", () => {
  const html = (count: number) => `<p ${"a ".repeat(count)}><iframe src=/embed/1></iframe>`;
  expect(json({ type: "video", html: html(900) }).resources).toHaveLength(1);
  expect(json({ type: "video", html: html(2_000) }).resources).toEqual([]);
});
