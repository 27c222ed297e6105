import { describe, expect, it } from "vitest";
import { probe } from "../../media/probe.ts";
import type { Answer } from "../../media/site.ts";
import { png } from "../../remux/additions.ts";
import { openStream } from "./faults.ts";
import type { OpenEngine } from "./harness.ts";

const segment = "ts/3.ts";

/** A server that is silent, for an engine that waits only a short time: no other test keeps the site busy meanwhile. */
export function describeSilence(open: OpenEngine): void {
  describe("if a server is silent", () => {
    it.concurrent("fails with the right error for a segment that never arrives, retryable", async () => {
      await using harness = await openStream(open);
      harness.site.answer(segment, () => {});
      const error = { code: "upstream_timeout", retryable: true };
      await expect(harness.download()).rejects.toMatchObject(error);
    });

    for (const [name, silence] of silences) {
      it.concurrent(`recovers from a segment that ${name} at the first request`, async () => {
        await using harness = await openStream(open);
        let isFirst = true;
        harness.site.answer(segment, (response, serve, request) => {
          const answer = isFirst ? silence : serve;
          isFirst = false;
          return answer(response, serve, request);
        });
        expect((await probe((await harness.download()).path)).streams).toMatchObject(whole);
      });
    }

    it.concurrent("takes no picture that never ends, and the media are complete", async () => {
      await using harness = await openStream(open);
      harness.site.answer("endless.png", (response) => {
        response.writeHead(200, { "content-type": "image/png" }).write(png.subarray(0, 20));
      });
      const description = { ...harness.job.description, covers: [harness.site.url("endless.png")] };
      const { path, others, warnings } = await harness.download({ description });
      expect([others, warnings]).toEqual([[], []]);
      expect((await probe(path)).streams).toMatchObject(whole);
    });
  });
}

const whole = [{ frames: 150 }, { frames: 283 }];

const silences: readonly (readonly [name: string, answer: Answer])[] = [
  ["stalls", (response) => response.writeHead(200, { "content-length": 11_092 }).write("G")],
  ["gets no response", () => {}],
];
