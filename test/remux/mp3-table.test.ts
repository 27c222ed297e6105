import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { openMp3File } from "../../src/remux/audio-files/mp3.ts";
import { makeFolder } from "../folder.ts";

/** A frame of 128 kbit/s and 44.1 kHz, in stereo. */
function frame(text = ""): Buffer {
  const bytes = Buffer.alloc(417);
  bytes.writeUInt32BE(0xfffb_9000);
  bytes.write(text, 36, "latin1");
  return bytes;
}

/** Writes frames into an MP3 file, of which the first one has a table of those of its source. */
function write(isCut: boolean): void {
  const fd = openSync(join(makeFolder(), "audio.mp3"), "w");
  onTestFinished(() => closeSync(fd));
  const track = { codec: "mp3", configuration: Buffer.alloc(0), delayS: null, language: null } as const;
  const file = openMp3File(track, { fd, additions: noAdditions, durationS: 10, isCut });
  for (const each of [frame("Info"), frame(), frame()]) file.add(each);
  file.finish(() => 0);
}

it("an MP3 file keeps a table of all of its source, but none of what was cut", () => {
  expect(() => write(false)).not.toThrow();
  expect(() => write(true)).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
});
