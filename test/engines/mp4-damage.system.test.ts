import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { resource } from "../media/resources.ts";
import { missing } from "../remux/mp4-media.ts";
import { createMediaFolder, videoInput } from "../remux/ts-media.ts";

const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32" });
const folder = createMediaFolder();
afterAll(async () => {
  folder.remove();
  await engine.close();
});

/** Returns what the warning `frames_missing` of a file that is kept as published says. */
async function damageOf(film: Buffer): Promise<string[]> {
  await using harness = await openEntry(() => engine, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");
  const { warnings } = await harness.download();
  return warnings.filter(({ code }) => code === "frames_missing").map(({ message }) => message);
}

const encoders = [
  ["libx264", "-x264-params", "slices=2"],
  ["libx265", "-x265-params", "log-level=none"],
] as const;

describe.each(encoders)("an MP4 file of %s", (encoder, ...params) => {
  describe.skipIf(missing(encoder))("that is kept as published", () => {
    const film = () => folder.make(`${encoder}.mp4`, ...videoInput(4), "-c:v", encoder, ...params);

    it("has no warning if it is right", async () => {
      expect(await damageOf(film())).toEqual([]);
    });

    it.each([
      ["zeros", () => 0],
      ["other bytes", (index: number) => (index * 131 + 77) & 0xff],
    ])("has one if there are %s in the middle", async (_what, byte) => {
      const bytes = film();
      const from = Math.round(bytes.length / 2);
      for (let index = 0; index < 8000; index++) bytes[from + index] = byte(index);
      expect(await damageOf(bytes)).toEqual(["pictures of the file are damaged at 1 place"]);
    });
  });
});
