import { expect, test } from "vitest";
import { Rotation } from "../../src/async/rotation.ts";

/** Takes all that waits. */
function takeAll(rotation: Rotation<string>): (string | undefined)[] {
  const taken = [];
  while (!rotation.isEmpty) taken.push(rotation.take());
  return taken;
}

function rotationOf(...items: string[]): Rotation<string> {
  const rotation = new Rotation<string>();
  for (const item of items) rotation.add(item.slice(0, 1), item);
  return rotation;
}

test("owners take turns, and what one has comes in its order", () => {
  expect(takeAll(rotationOf("a1", "a2", "a3", "b1", "c1", "b2"))).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(rotationOf().take()).toBeUndefined();
});

test("the owner of what is taken comes last, whoever's turn it was", () => {
  const rotation = rotationOf("a1", "a2", "b1", "b2", "c1");
  expect(rotation.take("b")).toBe("b1");
  expect(rotation.owners()).toEqual(["a", "c", "b"]);
  expect(rotation.take("d")).toBeUndefined();
});

test("what is removed is not taken, and its owner keeps its turn", () => {
  const rotation = rotationOf("a1", "b1", "b2", "c1");
  rotation.delete("b", "b1");
  rotation.delete("c", "c1");
  rotation.delete("d", "d1");
  expect([rotation.has("b", "b1"), rotation.has("b", "b2"), rotation.hasAny("c")]).toEqual([false, true, false]);
  expect(takeAll(rotation)).toEqual(["a1", "b2"]);
});
