import { expect, it } from "vitest";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { describeResolver } from "../contracts/resolver.ts";

describeResolver("the stub resolver", false, createStubResolver);

it("returns nothing but the URL and its own name", async () => {
  const { signal } = new AbortController();
  const info = await createStubResolver().resolve(new URL("https://x.example/v?1#a"), { signal });
  expect(info).toEqual({ url: "https://x.example/v?1#a", resolver: "stub" });
});
