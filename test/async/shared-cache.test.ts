import { expect, it } from "vitest";
import { SharedCache } from "../../src/async/shared-cache.ts";

const valueOf = (key: string) => ({ key });

it("an owner who caches much drops its own oldest values, not those of others who have less", () => {
  const cache = new SharedCache({ maxSize: 100 });
  cache.set("bob", "page", valueOf("page"), 10);
  for (let n = 0; n < 50; n += 1) cache.set("eve", `${n}`, valueOf(`${n}`), 10);
  expect(cache.get("bob", "page")).toEqual(valueOf("page"));
  expect(Array.from({ length: 50 }, (_, n) => cache.get("eve", `${n}`)).filter(Boolean)).toHaveLength(9);
  expect(cache.get("eve", "49")).toEqual(valueOf("49"));
});

it("an owner who is alone has all the space, and gives half of it to another one", () => {
  const cache = new SharedCache({ maxSize: 100 });
  const fill = (owner: string) => {
    for (let n = 0; n < 20; n += 1) cache.set(owner, `${n}`, valueOf(owner), 10);
  };
  const countOf = (owner: string) =>
    Array.from({ length: 20 }, (_, n) => cache.get(owner, `${n}`)).filter(Boolean).length;
  fill("eve");
  expect(countOf("eve")).toBe(10);
  fill("bob");
  expect([countOf("eve"), countOf("bob")]).toEqual([5, 5]);
});

it("a value that is larger than all the space is not kept, and drops nothing", () => {
  const cache = new SharedCache({ maxSize: 100 });
  cache.set("bob", "page", valueOf("page"), 10);
  cache.set("eve", "large", valueOf("large"), 101);
  expect(cache.get("eve", "large")).toBeUndefined();
  expect(cache.get("bob", "page")).toEqual(valueOf("page"));
});

it("owners do not share values", () => {
  const cache = new SharedCache({ maxSize: 100 });
  cache.set("eve", "page", valueOf("page"), 10);
  cache.delete("bob", "page");
  expect(cache.get("bob", "page")).toBeUndefined();
  expect(cache.get("eve", "page")).toEqual(valueOf("page"));
});
