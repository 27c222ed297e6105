import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { MediaDescription } from "../../../src/engines/engine.ts";
import { hasFfmpeg } from "../../media/probe.ts";
import { complaintsOf } from "../../media/read-media.ts";
import { readMedium } from "../../media/rendition.ts";
import { resource } from "../../media/resources.ts";
import { additions, packetHashes, png, probeAll } from "../../remux/additions.ts";
import { type EngineHarness, type OpenEngine, openEntry, openFixture } from "./harness.ts";

const segmented = ["HLS in MPEG-TS with B-frames", "HLS in fMP4 with both tracks in one", "DASH in WebM"];

/** What a page says of the media, in the file and beside it. */
export function describeAdditions(open: OpenEngine): void {
  async function openNamed(name: string): Promise<EngineHarness> {
    const harness = await openFixture(open, name);
    harness.site.resources.set("poster.png", resource("image/png", png));
    harness.site.resources.set("poster.webp", resource("image/webp", Buffer.from("RIFF\0\0\0\0WEBPVP8 ")));
    return harness;
  }
  const describing = ({ site }: EngineHarness, ...covers: string[]): MediaDescription => ({
    tags: additions.tags,
    name: null,
    chapters: additions.chapters,
    covers: covers.map((cover) => site.url(cover)),
  });
  const picturesIn = (path: string) =>
    probeAll(path).streams.filter(({ disposition }) => disposition["attached_pic"] === 1).length;

  describe.skipIf(!hasFfmpeg).concurrent("writes what the page says", () => {
    it.each(segmented)("into a file that is made: %s", async (name) => {
      await using harness = await openNamed(name);
      const { path, ext, others, warnings } = await harness.download({
        description: describing(harness, "poster.png"),
      });
      const { format, chapters } = probeAll(path);
      expect(format.tags["title"]).toBe(additions.tags.title);
      expect(format.tags[ext === "webm" ? "ARTIST" : "artist"]).toBe(additions.tags.artist);
      expect(chapters.map(({ tags }) => tags.title)).toEqual(additions.chapters.map(({ title }) => title));
      expect(picturesIn(path)).toBe(ext === "webm" ? 0 : 1);
      expect(others).toMatchObject([{ kind: "cover", ext: "png", mime_type: "image/png", size: png.length }]);
      expect(await readFile(others[0]!.path)).toEqual(png);
      expect(warnings).toEqual([]);
    });

    it("not into a file that is kept as published, which has a picture beside it", async () => {
      await using harness = await openNamed("an MP4 with its index in front");
      const published = (await harness.download()).sha256;
      const listed = ["gone.webp", "poster.webp", "poster.webp?large", "gone.jpg", "icon.svg", "poster.png"];
      const { sha256, others } = await harness.download({
        description: describing(harness, ...listed),
        folder: await harness.newFolder(),
      });
      expect(sha256).toBe(published);
      expect(others).toMatchObject([{ kind: "cover", ext: "png" }]);
    });

    it.each([
      "an MP4 with its index in front",
      "an MP4 with its index at the end",
      "a WebM of VP9 and Opus",
      "a Matroska file",
      "an M4A",
      "an MP3",
      "an Ogg of Vorbis",
    ])("into a file that is published, if that is asked for, and its media stay: %s", async (name) => {
      await using harness = await openNamed(name);
      const published = await harness.keep(
        "published",
        harness.site.resources.get(harness.job.format.url.split("/").at(-1)!)!.body,
      );
      const made = await harness.download({ description: describing(harness, "poster.png"), embed: "all" });
      const { format, streams, chapters } = probeAll(made.path);
      expect(format.tags?.["title"] ?? streams[0]?.tags?.["TITLE"]).toBe(additions.tags.title);
      expect(chapters.map(({ tags }) => tags.title)).toEqual(additions.chapters.map(({ title }) => title));
      expect(picturesIn(made.path)).toBe(made.ext === "webm" ? 0 : 1);
      const own = new Set(packetHashes(made.path));
      expect(packetHashes(published).filter((hash) => !own.has(hash))).toEqual([]);
      expect(complaintsOf(made.path)).toBe("");
      expect(made.warnings).toEqual([]);
    });

    it("not into a published file whose container cannot have it, which stays as it is", async () => {
      const aac = new Map([["tone.aac", resource("audio/aac", readMedium("tone.aac"))]]);
      await using harness = await openEntry(open, aac, "tone.aac");
      const published = (await harness.download()).sha256;
      const { sha256, warnings } = await harness.download({
        description: describing(harness),
        embed: "all",
        folder: await harness.newFolder(),
      });
      expect(sha256).toBe(published);
      expect(warnings).toMatchObject([{ code: "not_embedded" }]);
    });

    it("nowhere if nothing is to be embedded", async () => {
      await using harness = await openNamed(segmented[0]!);
      const plain = (await harness.download()).sha256;
      const { sha256, others } = await harness.download({
        description: describing(harness, "poster.png"),
        embed: "none",
        folder: await harness.newFolder(),
      });
      expect(sha256).toBe(plain);
      expect(others).toHaveLength(1);
    });
  });

  describe.concurrent("takes as picture", () => {
    it("the first one that is a JPEG or PNG by its bytes", async () => {
      await using harness = await openNamed(segmented[0]!);
      const { others } = await harness.download({
        description: describing(harness, "nothing.png", "poster.webp", "poster.png"),
      });
      expect(others).toMatchObject([{ ext: "png" }]);
    });

    it("none if none can be had, and the media are complete", async () => {
      await using harness = await openNamed(segmented[0]!);
      const { others, warnings } = await harness.download({
        description: describing(harness, "poster.webp", "nothing.png"),
      });
      expect([others, warnings]).toEqual([[], []]);
    });

    it("none from a network that is blocked", async () => {
      await using harness = await openNamed(segmented[0]!);
      const covers = ["http://127.0.0.2/poster.png", "http://[::1]/poster.png", "file:///etc/passwd"];
      const { others } = await harness.download({ description: { ...describing(harness), covers } });
      expect(others).toEqual([]);
    });
  });
}
