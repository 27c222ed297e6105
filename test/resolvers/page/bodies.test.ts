import { expect, test } from "vitest";
import { createPageResolver } from "./local-reader.ts";
import { createSavedClient } from "./saved-client.ts";

const host = "https://films.example.com";
const large = Buffer.from("<title>A film</title>".padEnd(600_000));

test("an owner who receives eight large pages waits for the ninth, and holds up no other owner", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  let beyond = 0;
  async function* slowBody() {
    begun += 1;
    yield large;
    beyond += 1;
    await released;
    yield Buffer.from(" ");
  }
  const slow = Array.from({ length: 9 }, (_, n) => [`${host}/slow${n}`, { body: slowBody }] as const);
  const client = createSavedClient({ ...Object.fromEntries(slow), [`${host}/other`]: { body: large } });
  const resolver = createPageResolver({ client, pageMaxBytes: 2_000_000 });
  const { signal } = new AbortController();
  const annas = Promise.all(slow.map(async ([url]) => resolver.resolve(new URL(url), { signal, owner: "anna" })));
  const { title } = await resolver.resolve(new URL(`${host}/other`), { signal, owner: "bert" });
  expect([title, begun, beyond]).toEqual(["A film", 9, 8]);
  release();
  expect((await annas).map((info) => info.title)).toEqual(Array(9).fill("A film"));
});
