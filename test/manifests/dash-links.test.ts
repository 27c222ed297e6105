import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { resolveLinks } from "../../src/manifests/dash/links.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { measureStall } from "../fuzz/stall.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/films/42/main.mpd");

/** Resolves the links of an MPD on a site that has these documents; returns the MPD and what was requested. */
async function resolve(body: string, documents: Record<string, string | ServiceError> = {}) {
  const asked: string[] = [];
  const text = await resolveLinks(
    { text: `<MPD xmlns:xlink="http://www.w3.org/1999/xlink" mediaPresentationDuration="PT8S">${body}</MPD>`, url },
    async (link) => {
      asked.push(link.href);
      const found = documents[link.pathname] ?? new ServiceError("upstream_status", "GET failed with status 404");
      if (found instanceof ServiceError) throw found;
      return { text: found, url: link };
    },
  );
  return { text, asked };
}

const set = (id: string) =>
  `<AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="$Number$.m4s" duration="4"/><Representation id="${id}"/></AdaptationSet>`;
const linked = (href: string, own = "", name = "AdaptationSet") => `<${name} xlink:href="${href}">${own}</${name}>`;
const ids = (text: string) => openMpd(text, url).listing.formats.map(({ format_id }) => format_id);

test("a linked element is replaced by the elements that the link leads to, at load or on request", async () => {
  const { text, asked } = await resolve(
    `<Period>${set("own")}<AdaptationSet lang="en" xlink:actuate="onLoad" xlink:href="a.xml"/>` +
      `<AdaptationSet xl:actuate="onRequest" xl:href='/b.xml?q=1&amp;r=2'></AdaptationSet></Period>`,
    { "/films/42/a.xml": `\uFEFF<?xml version="1.0"?>\n${set("a1")}<!-- and -->${set("a2")}`, "/b.xml": set("b") },
  );
  expect(ids(text)).toEqual(["dash-own", "dash-a1", "dash-a2", "dash-b"]);
  expect(asked).toEqual(["https://media.example.com/films/42/a.xml", "https://media.example.com/b.xml?q=1&r=2"]);
});

test("any element may be linked: a Period, a Representation, a SegmentList", async () => {
  const { text } = await resolve(
    `${linked("p.xml", "", "Period")}<Period duration="PT4S"><AdaptationSet mimeType="audio/mp4">` +
      `<Representation id="r">${linked("list.xml", "", "SegmentList")}</Representation></AdaptationSet></Period>`,
    {
      "/films/42/p.xml": `<Period duration="PT4S">${set("r")}</Period>`,
      "/films/42/list.xml": '<SegmentList duration="4"><SegmentURL media="listed.m4s"/></SegmentList>',
    },
  );
  const { segments } = openMpd(text, url).segments("dash-r");
  expect(segments.map((segment) => segment.url.slice(-10))).toContain("listed.m4s");
});

test("links of elements of other namespaces are left as they are", async () => {
  const foreign = '<x:picture xmlns:x="urn:x" xlink:href="1.png"/>';
  const { text, asked } = await resolve(`${foreign}<Period>${foreign}${set("own")}${linked("a.xml")}</Period>`, {
    "/films/42/a.xml": `${set("a")}${linked("b.xml")}`,
    "/films/42/b.xml": set("b"),
  });
  expect(asked.map((href) => href.split("/").at(-1))).toEqual(["a.xml", "b.xml"]);
  expect(ids(text)).toEqual(["dash-own", "dash-a", "dash-b"]);
});

test("a linked element may link further, relative to where it is", async () => {
  const documents = {
    "/films/42/x/1.xml": linked("2.xml"),
    "/films/42/x/2.xml": linked("3.xml"),
    "/films/42/x/3.xml": set("deep"),
  };
  expect(ids((await resolve(`<Period>${linked("x/1.xml")}</Period>`, documents)).text)).toEqual(["dash-deep"]);
});

test("four links at a time are followed, in their order, and no more once the MPD has got too long", async () => {
  let open = 0;
  let most = 0;
  const asked: string[] = [];
  const follow = (body: string, documentOf: (path: string) => string) =>
    resolveLinks({ text: `<MPD xmlns:xlink="http://www.w3.org/1999/xlink">${body}</MPD>`, url }, async (link) => {
      asked.push(link.pathname.slice(-1));
      most = Math.max(most, (open += 1));
      await setImmediate();
      open -= 1;
      return { text: documentOf(link.pathname), url: link };
    });
  const nested = (path: string) => (path.endsWith("x") ? set("x") : linked("x").repeat(3));
  const links = "abcde"
    .split("")
    .map((name) => linked(name))
    .join("");
  expect(await follow(links, nested)).toContain(set("x").repeat(15));
  expect([asked.slice(0, 4).join(""), asked.length, most]).toEqual(["abcd", 20, 4]);
  asked.length = 0;
  const long = set("a") + " ".repeat(1_000_000);
  await expect(
    follow(
      "abcdefghijkl"
        .split("")
        .map((name) => linked(name))
        .join(""),
      () => long,
    ),
  ).rejects.toThrow(/characters/);
  expect(asked.length).toBeLessThan(12);
});

test("links that are too deep or too many are refused", async () => {
  const refusal = /at most 20 links \(xlink:href\), at most 3 deep/;
  const loop = { "/films/42/loop.xml": linked("loop.xml") };
  await expect(resolve(`<Period>${linked("loop.xml")}</Period>`, loop)).rejects.toThrow(refusal);
  const many = resolve(`<Period>${linked("a.xml").repeat(21)}</Period>`, { "/films/42/a.xml": set("a") });
  await expect(many).rejects.toThrow(refusal);
  const large = { "/films/42/a.xml": set("a") + " ".repeat(900_000) };
  await expect(resolve(`<Period>${linked("a.xml").repeat(5)}</Period>`, large)).rejects.toThrow(/the limit is 4194304/);
});

test("a link that leads to nothing of the element's name is refused", async () => {
  const period = `<Period>${linked("a.xml")}</Period>`;
  await expect(resolve(period)).rejects.toThrow(
    failure("upstream_invalid", /link of AdaptationSet to "a\.xml" .* status 404/),
  );
  await expect(resolve(period, { "/films/42/a.xml": "<html></html>" })).rejects.toThrow(
    failure("upstream_invalid", /got "html"/),
  );
  await expect(resolve(period, { "/films/42/a.xml": "" })).rejects.toThrow(
    failure("upstream_invalid", /got "nothing"/),
  );
  await expect(resolve(`<Period>${linked("//a@b/")}</Period>`)).rejects.toThrow(
    failure("upstream_invalid", /must not contain a user name/),
  );
});

test("an element whose link leads nowhere keeps its own content", async () => {
  const own = "<Representation id='own' mimeType='audio/mp4'><BaseURL>a.mp4</BaseURL></Representation>";
  const { text } = await resolve(`<Period>${linked("gone.xml", own)}</Period>`);
  expect(ids(text)).toEqual(["dash-own"]);
  expect(text).not.toContain(":href");
});

test("a link that stands for no element removes it", async () => {
  const zero = linked("urn:mpeg:dash:resolve-to-zero:2013", "", "Period");
  const { text, asked } = await resolve(`${zero}<Period>${set("a")}</Period>`);
  expect(openMpd(text, url).segments("dash-a").segments.length).toBeGreaterThan(0);
  expect(asked).toEqual([]);
});

test("a URL that is not http(s), one that is blocked, and a failure that may pass are errors of their own", async () => {
  const period = (href: string) => `<Period>${linked(href, set("own"))}</Period>`;
  const code = (name: string) => expect.objectContaining({ code: name });
  await expect(resolve(period("file:///etc/passwd"))).rejects.toThrow(code("address_blocked"));
  const answers = (name: "address_blocked" | "upstream_timeout") => ({ "/a.xml": new ServiceError(name, "") });
  await expect(resolve(period("/a.xml"), answers("address_blocked"))).rejects.toThrow(code("address_blocked"));
  await expect(resolve(period("/a.xml"), answers("upstream_timeout"))).rejects.toThrow(code("upstream_timeout"));
});

test("links of events are left alone, and of comments", async () => {
  const body = `<Period><EventStream xlink:href="e.xml"/><!-- ${linked("c.xml")} -->${set("a")}</Period>`;
  const { text, asked } = await resolve(body);
  expect(asked).toEqual([]);
  expect(openMpd(text, url).segments("dash-a").hasEnded).toBe(true);
});

test("many at once hold the thread no longer than one", async () => {
  const texts = '<S t="0" d="1"/>'.repeat(8_000);
  const body = `<Period>${texts}</Period>${'<Period xlink:href="x"/>'.repeat(4)}`;
  const text = `<MPD xmlns:xlink="http://www.w3.org/1999/xlink">${body}</MPD>`;
  const follow = () => resolveLinks({ text, url }, async () => ({ text: `<Period>${texts}</Period>`, url }));
  const { outcome, stallMs } = await measureStall(() => Promise.all(Array.from({ length: 32 }, follow)));
  expect(outcome).toHaveProperty("value");
  // Over 700 if each pauses for itself alone.
  expect(stallMs).toBeLessThan(300);
});

const long = 4_000_000;

test.each([
  ["elements", "<Period>".repeat(long / 8), "it must be at most 64 levels deep"],
  ["elements with short names", "<a>".repeat(long / 3), "it must be at most 64 levels deep"],
  [
    "attributes",
    `<Period ${Array.from({ length: long / 12 }, (_, n) => `a${n}="x"`).join(" ")}/>`,
    "an element must have at most 1000 attributes",
  ],
  [
    "namespaces",
    `<Period ${Array.from({ length: long / 18 }, (_, n) => `xmlns:a${n}="x"`).join(" ")}/>`,
    "an element must have at most 1000 attributes",
  ],
])("nor does one with %s without end", async (_, nested, rule) => {
  const { outcome, stallMs } = await measureStall(() => resolve(linked("a.xml", "", "Period") + nested));
  expect(outcome).toHaveProperty("error.message", expect.stringContaining(rule));
  expect(stallMs).toBeLessThan(100);
});

test("nor does a linked document that is nested without end", async () => {
  const documents = { "/films/42/a.xml": "<Period>".repeat(1024 * 128) };
  const { outcome, stallMs } = await measureStall(() => resolve(linked("a.xml", "", "Period"), documents));
  expect(outcome).toHaveProperty("error.message", expect.stringContaining("it must be at most 64 levels deep"));
  expect(stallMs).toBeLessThan(100);
});
