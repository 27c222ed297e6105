import { describe, expect, it } from "vitest";
import { first } from "../media/faults.ts";
import { hashOfFile, mediumOf, sha256, startTrial } from "./parts-harness.ts";

const medium = mediumOf(100_000);

describe("a status", () => {
  it.each([404, 403, 410, 416])("%i fails the part at once", async (status) => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, { status });
    await expect(trial.fetch(await trial.open())).rejects.toMatchObject({
      code: "upstream_status",
      upstreamStatus: status,
      retryable: false,
    });
    expect(trial.server.requests).toHaveLength(1);
  });

  it.each([408, 425, 429, 500, 503])("%i is tried again three times", async (status) => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, first(3, { status }));
    const parts = await trial.open();
    expect(await hashOfFile((await trial.fetch(parts)).path)).toBe(sha256(medium));
    expect(trial.server.requests).toHaveLength(4);
    trial.server.serve("/medium", medium, { status });
    await expect(trial.fetch(parts, { name: "other" })).rejects.toMatchObject({
      upstreamStatus: status,
      retryable: true,
    });
    expect(trial.server.requests).toHaveLength(8);
  });

  it("with Retry-After is not asked again before, nor at all if that is long", async () => {
    const trial = await startTrial();
    const waiting = (seconds: string) => ({ status: 429, headers: { "retry-after": seconds } });
    trial.server.serve("/medium", medium, first(1, waiting("1")));
    const parts = await trial.open();
    await trial.fetch(parts);
    const [before, after] = trial.server.requests.map(({ atMs }) => atMs);
    expect(after! - before!).toBeGreaterThan(950);
    trial.server.serve("/medium", medium, waiting("31"));
    await expect(trial.fetch(parts, { name: "other" })).rejects.toMatchObject({
      upstreamStatus: 429,
      retryAfterS: 31,
    });
    expect(trial.server.requests).toHaveLength(3);
  });
});
