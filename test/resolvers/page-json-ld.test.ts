import { describe, expect, it } from "vitest";
import { jsonLd, resolvePage } from "./page/saved-client.ts";

const video = {
  "@context": "https://schema.org",
  "@type": "VideoObject",
  name: "Otters",
  duration: "PT5S",
};

describe("JSON-LD", () => {
  it.each([
    ["in an array", [{ "@type": "WebSite" }, video]],
    ["in a graph", { "@graph": [{ "@type": "WebPage" }, video] }],
    ["nested in the page that it is the main entity of", { "@type": "WebPage", mainEntity: video }],
    ["in a @list", { "@type": "WebPage", video: { "@list": [video] } }],
    ["with several types", { ...video, "@type": ["Clip", "VideoObject"] }],
    ["with its type's full URL", { ...video, "@type": "http://schema.org/VideoObject" }],
    ["with prefixed terms", { "@type": "schema:VideoObject", "schema:name": "Otters", "schema:duration": "PT5S" }],
    ["with typed values", { ...video, duration: { "@type": "Duration", "@value": "PT5S" } }],
  ])("finds a video %s", async (_, block) => {
    expect(await resolvePage(jsonLd(block))).toMatchObject({ title: "Otters", duration: 5 });
  });

  const clip = (name: string, startOffset: unknown, endOffset?: unknown) => ({
    "@type": "Clip",
    name,
    startOffset,
    ...(endOffset !== undefined && { endOffset }),
  });
  it.each([
    [
      "in any order",
      [clip("b", 60, 90), clip("a", 0, 60)],
      [
        [0, 60, "a"],
        [60, 90, "b"],
      ],
    ],
    [
      "without ends",
      [clip("a", 0), clip("b", "60")],
      [
        [0, 60, "a"],
        [60, 100, "b"],
      ],
    ],
    [
      "that overlap",
      [clip("a", 0, 80), clip("b", 60, 90)],
      [
        [0, 60, "a"],
        [60, 90, "b"],
      ],
    ],
    [
      "with durations as offsets",
      [clip("a", "PT0S", "PT1M"), clip("b", "PT1M", "PT90S")],
      [
        [0, 60, "a"],
        [60, 90, "b"],
      ],
    ],
    [
      "with clocks and whole durations as offsets",
      [clip("a", "PT0H0M0S"), clip("b", "00:00:30"), clip("c", "PT0H1M0S")],
      [
        [0, 30, "a"],
        [30, 60, "b"],
        [60, 100, "c"],
      ],
    ],
    ["beyond the end", [clip("a", 10, 999), clip("b", 200, 300)], [[10, 100, "a"]]],
    ["with nonsense", [clip("a", -5, 10), clip("b", "x", 3), clip("c", 20, 10), clip("d", 30, 40)], [[30, 40, "d"]]],
  ])("lists the chapters of a video, Clips %s", async (_, hasPart, expected) => {
    const { chapters = [], sources } = await resolvePage(jsonLd({ ...video, duration: "PT100S", hasPart }));
    expect(chapters.map(({ start_time, end_time, title }) => [start_time, end_time, title])).toEqual(expected);
    expect(sources["chapters"]).toBe("json-ld");
  });

  it("lists no chapter that is the whole video, and at most 500", async () => {
    const whole = await resolvePage(jsonLd({ ...video, hasPart: clip("a", 0, 5) }));
    expect(whole.chapters).toBeUndefined();
    const many = Array.from({ length: 900 }, (_, i) => clip(`part ${i}`, i));
    const { chapters = [] } = await resolvePage(jsonLd({ ...video, duration: "PT900S", hasPart: many }));
    expect(chapters.map(({ start_time }) => start_time)).toEqual(Array.from({ length: 500 }, (_, i) => i));
  });

  const source = JSON.stringify(video);
  it.each([
    ["a trailing comma", source.replace("}", ",}")],
    ["an HTML comment around it", `<!-- ${source} -->`],
    ["CDATA marks around it", `//<![CDATA[\n${source}\n//]]>`],
    ["comments in it", source.replace("{", "{ /* a video, */ // really\n")],
    ["a final semicolon", `${source};`],
    ["a raw line break in a string", source.replace("Otters", "Otters\n")],
    ["its quotes as entities", source.replaceAll('"', "&quot;")],
  ])("is read despite %s", async (_, block) => {
    expect(await resolvePage(jsonLd(block))).toMatchObject({ title: "Otters", duration: 5 });
  });

  it.each(["APPLICATION/LD+JSON", " application/ld+json; charset=utf-8"])(
    "is read from a script of the type %j",
    async (type) => {
      const info = await resolvePage(`<script type="${type}">${source}</script>`);
      expect(info).toMatchObject({ title: "Otters", duration: 5 });
    },
  );

  it.each(["application/json", "text/javascript", "application/ld+jsonp"])(
    "is not read from a script of the type %j",
    async (type) => {
      const info = await resolvePage(`<script type="${type}">${source}</script>`);
      expect(info).toMatchObject({ title: null, duration: null });
    },
  );

  it("reads a block of up to a Mi of characters, as one with a transcript", async () => {
    const withTranscript = (length: number) => jsonLd({ ...video, name: "Long", transcript: "a".repeat(length) });
    expect(await resolvePage(withTranscript(1_000_000))).toMatchObject({ title: "Long", duration: 5 });
    const both = jsonLd(video) + withTranscript(1024 * 1024);
    expect(await resolvePage(both)).toMatchObject({ title: "Otters", duration: 5 });
  });

  it("ignores broken blocks one by one", async () => {
    const info = await resolvePage(jsonLd("{ broken", "", "null", video, '{"@type": '));
    expect(info).toMatchObject({ title: "Otters", duration: 5 });
  });

  const otters = {
    "@type": "TVEpisode",
    name: "Otters",
    episodeNumber: 3,
    partOfSeason: { "@type": "TVSeason", seasonNumber: "2" },
    partOfSeries: { "@type": "TVSeries", name: "Pets" },
  };
  const numbered = { series: "Pets", season_number: 2, episode_number: 3 };
  it.each([
    ["the episode that the page is about", [{ ...otters, video }], numbered],
    ["a video that is an episode", [{ ...otters, ...video, "@type": ["VideoObject", "TVEpisode"] }], numbered],
    [
      "a season that alone names the series",
      [{ ...video, partOfSeason: { partOfSeries: { name: "Pets" } } }],
      { series: "Pets" },
    ],
    [
      "a special, of season 0",
      [{ ...video, episodeNumber: "1", partOfSeason: { seasonNumber: 0 } }],
      { season_number: 0, episode_number: 1 },
    ],
    ["none of several episodes", [video, otters, { ...otters, name: "Cats", episodeNumber: 4 }], {}],
  ])("tells series, season and episode of %s", async (_, blocks, expected) => {
    const { series, season_number, episode_number } = await resolvePage(jsonLd(...blocks));
    expect({ series, season_number, episode_number }).toEqual(expected);
  });

  it("resolves references by @id, to other blocks too", async () => {
    const parts = [
      { ...video, author: { "@id": "#ada" } },
      { "@id": "#ada", "@type": "Person", name: "Ada" },
    ];
    for (const html of [jsonLd({ "@graph": parts }), jsonLd(...parts), jsonLd(...parts.toReversed())]) {
      expect((await resolvePage(html)).uploader).toBe("Ada");
    }
  });

  it("reads a page that its site calls a part of itself", async () => {
    const site = { "@type": "WebSite", hasPart: { "@id": "#page" } };
    const page = { "@type": "WebPage", "@id": "#page", description: "All about otters" };
    for (const html of [jsonLd({ "@graph": [site, page] }), jsonLd(site, page), jsonLd(page, site)]) {
      expect((await resolvePage(html)).description).toBe("All about otters");
    }
    const other = jsonLd({ "@type": "WebPage", hasPart: { "@type": "WebPage", description: "Foxes" } });
    expect((await resolvePage(other)).description).toBeNull();
  });

  it("takes no one else's URL for that of the uploader", async () => {
    const acme = { "@type": "Organization", name: "Acme", url: "/acme" };
    const of = async (more: object) => (await resolvePage(jsonLd({ ...video, ...more }))).uploader_url;
    expect(await of({ author: "Ada", creator: acme })).toBeNull();
    expect(await of({ author: { name: "https://ada.example" }, creator: acme })).toBe("https://video.example.com/acme");
  });

  it.each([
    ["https://video.example.com/u/ada#person", "https://video.example.com/u/ada#person"],
    ["https://video.example.com/#/schema/person/1", null],
    ["#ada", null],
  ])("takes an uploader's id for the URL of a page unless it only names the uploader: %s", async (id, expected) => {
    const info = await resolvePage(jsonLd({ ...video, author: { "@type": "Person", "@id": id, name: "Ada" } }));
    expect(info).toMatchObject({ uploader: "Ada", uploader_url: expected });
  });

  it("decodes entities once", async () => {
    const info = await resolvePage(jsonLd({ ...video, name: "Tom &amp;amp; Jerry" }));
    expect(info.title).toBe("Tom &amp; Jerry");
  });

  it("lists the widest image first; those of unknown widths keep their places", async () => {
    const image = (name: string, width?: number) => ({
      "@type": "ImageObject",
      url: `https://img.example.com/${name}`,
      ...(width !== undefined && { width }),
    });
    const thumbnail = [image("small", 64), image("large", 1280), image("one"), image("middle", 640), image("two")];
    const { thumbnails } = await resolvePage(jsonLd({ ...video, thumbnailUrl: undefined, thumbnail }));
    const names = thumbnails.map(({ url }) => url.split("/").at(-1));
    expect(names).toEqual(["large", "middle", "one", "small", "two"]);
  });

  it("reads properties in any case, and removes markup from descriptions", async () => {
    const info = await resolvePage(
      jsonLd({
        ...video,
        embedURL: "https://player.example.com/1",
        thumbnailURL: "https://img.example.com/1.jpg",
        description: "<p>Two <b>otters</b></p><p>play</p>",
      }),
    );
    expect(info.embed?.url).toBe("https://player.example.com/1");
    expect(info.thumbnails[0]?.url).toBe("https://img.example.com/1.jpg");
    expect(info.description).toBe("Two otters\nplay");
  });

  it.each([
    ["a plain count", { interactionCount: "1,234" }, 1234],
    ["UserPlays", { interactionCount: ["UserLikes:5", "UserPlays:6241"] }, 6241],
    [
      "a WatchAction",
      {
        interactionStatistic: {
          interactionType: "http://schema.org/WatchAction",
          userInteractionCount: 7,
        },
      },
      7,
    ],
    [
      "likes alone",
      {
        interactionStatistic: {
          interactionType: { "@type": "LikeAction" },
          userInteractionCount: 7,
        },
      },
      null,
    ],
    ["a counter without a type", { interactionStatistic: { userInteractionCount: 7 } }, 7],
    ["a rounded count", { interactionCount: "1.2M" }, null],
  ])("counts views from %s", async (_, stated, views) => {
    expect((await resolvePage(jsonLd({ ...video, ...stated }))).view_count).toBe(views);
  });

  it.each([
    ["is_live", { startDate: "2024-05-06T07:00:00Z" }],
    ["is_live", { startDate: "2024-05-06T07:00:00Z", endDate: "2024-05-06T09:00:00Z" }],
    ["was_live", { startDate: "2024-05-05T07:00:00Z", endDate: "2024-05-05T09:00:00Z" }],
    ["is_upcoming", { startDate: "2024-05-07T07:00:00Z" }],
    [null, { startDate: "2024-05-06T07:00:00Z", isLiveBroadcast: false }],
  ])("returns %s for a broadcast at %o", async (status, event) => {
    const publication = { "@type": "BroadcastEvent", isLiveBroadcast: true, ...event };
    expect((await resolvePage(jsonLd({ ...video, publication }))).live_status).toBe(status);
  });

  it.each([
    [18, { isFamilyFriendly: false }],
    [18, { isFamilyFriendly: "http://schema.org/False" }],
    [16, { contentRating: "FSK 16" }],
    [null, { isFamilyFriendly: "True" }],
  ])("limits the age to %s for %o", async (limit, stated) => {
    expect((await resolvePage(jsonLd({ ...video, ...stated }))).age_limit).toBe(limit);
  });

  it("does not let a page change objects' prototypes", async () => {
    const block = '{"@type":"VideoObject","name":"Otters","__proto__":{"duration":"PT9S","polluted":"yes"}}';
    expect(await resolvePage(jsonLd(block))).toMatchObject({ title: "Otters", duration: null });
    expect({}).not.toHaveProperty("polluted");
  });
});
