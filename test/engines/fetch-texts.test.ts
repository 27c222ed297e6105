import { readdirSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { WantedSubtitles } from "../../src/engines/engine.ts";
import { fetchTexts } from "../../src/engines/native/texts/fetch-texts.ts";
import { TextStore } from "../../src/engines/native/texts/text-store.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { resource } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import { makeFolder } from "../folder.ts";

const text = (words: string) => resource("text/plain", Buffer.from(`WEBVTT\n\n00:01.000 --> 00:02.000\n${words}\n`));
const site = await startSite(
  new Map([
    ["written.vtt", text("written")],
    ["captions.vtt", text("captions")],
    ["automatic.vtt", text("automatic")],
    ["long.vtt", text("x".repeat(900 << 10))],
    ["broken.vtt", resource("text/plain", Buffer.from("nonsense"))],
  ]),
);
const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => Promise.all([client.close(), site.close()]));

const track = (name: string, fields: Partial<WantedSubtitles> = {}): WantedSubtitles => {
  const listings = [{ url: site.url(`${name}.vtt`), ext: "vtt", name: null }];
  return { language: "en", name: "", role: "subtitles", automatic: false, listings, ...fields };
};
const automatic = track("automatic", { automatic: true });
const otherwise = [automatic];

async function fetched(...subtitles: WantedSubtitles[]) {
  const { signal } = new AbortController();
  const { texts, warnings } = await fetchTexts(
    { subtitles, pageUrl: site.url("page") },
    { client, store: new TextStore(makeFolder()), signal },
  );
  const words = texts.flatMap(({ stored }) => stored.parts().flatMap(({ cues }) => cues.map((cue) => cue.text)));
  return { words, warnings: warnings.map(({ message }) => message) };
}

describe("subtitles that people wrote", () => {
  const reason = "the subtitles cannot be read: they are neither WebVTT nor TTML, SubRip, SubStation Alpha or LRC";

  it("are taken, and no automatic captions, if they can be read", async () => {
    expect(await fetched(track("written", { otherwise }))).toEqual({ words: ["written"], warnings: [] });
    expect(site.asked.map(({ path }) => path)).not.toContain("automatic.vtt");
  });

  it("are replaced by automatic captions if they cannot be read, with a warning that says so", async () => {
    const missing = `the subtitles in en are missing: ${reason}`;
    expect(await fetched(track("broken", { otherwise }))).toEqual({
      words: ["automatic"],
      warnings: [`${missing}; automatic captions are there instead`],
    });
    const unread = [track("broken", { automatic: true })];
    expect(await fetched(track("broken", { otherwise: unread }))).toEqual({ words: [], warnings: [missing] });
    expect(await fetched(track("broken"))).toEqual({ words: [], warnings: [missing] });
  });

  it("are not replaced if others of their language can be read, but for forced ones", async () => {
    const broken = track("broken", { otherwise });
    const captions = track("captions", { role: "captions", otherwise });
    expect((await fetched(broken, captions)).words).toEqual(["captions"]);
    expect((await fetched(broken, { ...captions, language: "de" })).words).toEqual(["captions", "automatic"]);
    expect((await fetched(broken, track("captions", { role: "forced" }))).words).toEqual(["captions", "automatic"]);
  });

  it("are replaced once, though several of a language cannot be read, or the captions were wanted anyway", async () => {
    const broken = track("broken", { otherwise });
    expect((await fetched(broken, { ...broken, role: "captions" })).words).toEqual(["automatic"]);
    expect((await fetched(broken, automatic)).words).toEqual(["automatic"]);
  });
});

it("the bytes of a connection that breaks do not count, as they are fetched again", async () => {
  let isFirst = true;
  site.answer("long.vtt", (response, serve) => {
    if (!isFirst) return serve();
    isFirst = false;
    response.writeHead(200, { "content-length": 901 << 10 });
    return response.write("x".repeat(800 << 10), () => response.destroy());
  });
  const folder = makeFolder();
  const { signal } = new AbortController();
  const job = { subtitles: [track("long")], pageUrl: site.url("page") };
  const { texts, warnings } = await fetchTexts(job, { client, store: new TextStore(folder), signal });
  expect([texts.length, warnings]).toEqual([1, []]);
  expect(site.asked.filter(({ path }) => path === "long.vtt")).toHaveLength(2);
  // With what was lost it would be a long one, which is on the disk.
  expect(readdirSync(folder)).toEqual([]);
});
