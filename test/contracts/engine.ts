import { afterAll, beforeAll, describe } from "vitest";
import type { Engine } from "../../src/engines/engine.ts";
import { describeAdditions } from "./engine/additions.ts";
import { describeAudio } from "./engine/audio.ts";
import { describeDemands } from "./engine/demands.ts";
import { describeFaults } from "./engine/faults.ts";
import { describeFileWarnings } from "./engine/file-warnings.ts";
import { describeSsrf } from "./engine/ssrf.ts";
import { describeLive } from "./engine/live.ts";
import { describeMatrix } from "./engine/matrix.ts";
import { describeMoves } from "./engine/moves.ts";
import { describeRanges } from "./engine/ranges.ts";
import { describeRefusals } from "./engine/refusals.ts";
import { describeSilence } from "./engine/silence.ts";
import { describeSubtitles } from "./engine/subtitles.ts";
import { describeResume } from "./engine/resume.ts";

interface EngineOptions {
  /** The only network that may be fetched. */
  allowNetworks: readonly string[];
  /** Default: that of the service. */
  idleTimeoutMs?: number;
}

/** The contract of `src/engines/engine.ts`. */
export function describeEngine(name: string, open: (options: EngineOptions) => Engine): void {
  let engine: Engine;
  let impatient: Engine;
  beforeAll(() => {
    engine = open({ allowNetworks: ["127.0.0.1/32"] });
    impatient = open({ allowNetworks: ["127.0.0.1/32"], idleTimeoutMs: 2_000 });
  });
  afterAll(() => Promise.all([engine.close(), impatient.close()]));
  describe(`${name}, as any engine,`, () => {
    describeMatrix(() => engine);
    describeAdditions(() => engine);
    describeAudio(() => engine);
    describeSubtitles(() => engine);
    describeRanges(() => engine);
    describeLive(() => engine);
    describeFileWarnings(() => engine);
    describeRefusals(() => engine);
    describeSsrf(() => engine);
    describeResume(() => engine);
    describeFaults(() => engine);
    describeDemands(() => engine);
    describeMoves(() => engine);
    describeSilence(() => impatient);
  });
}
