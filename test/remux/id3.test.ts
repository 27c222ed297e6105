import { expect, it } from "vitest";
import { readId3 } from "../../src/remux/tags/id3.ts";

it("a tag with chapters within each other has the outer one", () => {
  const depth = 20_000;
  const levelBytes = 28;
  const tag = Buffer.alloc(10 + depth * levelBytes);
  const size = tag.length - 10;
  tag.set([...Buffer.from("ID3\x03\0\0", "latin1"), size >> 21, (size >> 14) & 127, (size >> 7) & 127, size & 127]);
  for (let at = 10; at < tag.length; at += levelBytes) {
    tag.write("CHAP", at);
    tag.writeUInt32BE(tag.length - at - 10, at + 4);
    tag.write("c", at + 10);
  }
  expect(readId3(tag)?.map(({ id, bytes }) => [id, bytes.length])).toEqual([["CHAP", size]]);
});
