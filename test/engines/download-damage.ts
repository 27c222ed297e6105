import { afterAll } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { resource, type Resources } from "../media/resources.ts";

/** Returns functions that return what the warning `frames_missing` of a download says, for the tests of one file. */
export function openDownloadDamage() {
  const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
  afterAll(() => engine.close());

  async function damageAt(resources: Resources, entry: string): Promise<string[]> {
    await using harness = await openEntry(() => engine, resources, entry);
    const { warnings } = await harness.download();
    return warnings.filter(({ code }) => code === "frames_missing").map(({ message }) => message);
  }

  return {
    damageAt,
    /** Of one file that is kept as published. */
    damageOf: (name: string, type: string, parts: readonly Uint8Array[]) =>
      damageAt(new Map([[name, resource(type, Buffer.concat([...parts]))]]), name),
  };
}
