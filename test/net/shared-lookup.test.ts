import { describe, expect, it } from "vitest";
import { createSharedLookup, type Lookup } from "../../src/net/addresses/address-guard.ts";
import { get, localClient, read } from "./client.ts";
import { fetchThrough, localProxy, openRun } from "./proxy-client.ts";
import { startUpstream } from "./upstream.ts";

const never = new AbortController().signal;

/** A name server that does not answer for `*.silent.test`; all other names are this machine. `asked` lists the silent names. */
function startNameServer() {
  const asked: string[] = [];
  const unanswered = new Map<string, () => void>();
  const lookup: Lookup = createSharedLookup(async (name) => {
    if (name.endsWith(".silent.test")) {
      asked.push(name);
      await new Promise<void>((resolve) => unanswered.set(name, resolve));
    }
    return [{ address: "127.0.0.1", family: 4 }];
  });
  return { lookup, asked, answer: (name: string) => unanswered.get(name)?.() };
}

const silentNames = (owner: string) => Array.from({ length: 40 }, (_, n) => `${owner}${n}.silent.test`);

describe("a lookup that owners share", () => {
  it("finds an owner's name while the name servers of several others are silent", async () => {
    const { lookup, asked } = startNameServer();
    for (const owner of ["eve", "mallory", "trudy"]) {
      for (const name of silentNames(owner)) void lookup(name, { owner, signal: never });
    }
    const found = await lookup("films.test", { owner: "anna", signal: never });
    expect(found).toEqual([{ address: "127.0.0.1", family: 4 }]);
    const counts = ["eve", "mallory", "trudy"].map((owner) => asked.filter((name) => name.startsWith(owner)).length);
    expect(counts).toEqual([8, 4, 2]);
  });

  it("looks up what waits as soon as another name is found, and not what nobody waits for any more", async () => {
    const { lookup, asked, answer } = startNameServer();
    const left = new AbortController();
    const [first = "", ...others] = silentNames("eve").slice(0, 8);
    const found = [first, ...others].map((name) => lookup(name, { owner: "eve", signal: never }));
    const abandoned = lookup("abandoned.silent.test", { owner: "eve", signal: left.signal });
    const last = lookup("films.test", { owner: "eve", signal: never });
    left.abort(new Error("nobody waits"));
    await expect(abandoned).rejects.toThrow("nobody waits");
    answer(first);
    await found[0];
    await last;
    expect(asked).toEqual([first, ...others]);
  });

  it("counts a client's requests for their owners", async () => {
    const { lookup, asked } = startNameServer();
    const client = localClient({ lookup });
    const { port } = (await startUpstream((_request, response) => response.end("film"))).url("/");
    const left = new AbortController();
    const eves = silentNames("eve").map((name) =>
      get(client, new URL(`http://${name}:${port}/`), { owner: "eve", signal: left.signal }),
    );
    expect(await read(client, new URL(`http://films.test:${port}/`), { owner: "anna" })).toBe("film");
    expect(asked).toHaveLength(8);
    left.abort(new Error("left"));
    for (const each of eves) await expect(each).rejects.toThrow("left");
  });

  it("counts the requests of a run of the proxy for that run", async () => {
    const { lookup, asked } = startNameServer();
    const proxy = await localProxy({ lookup });
    const { port } = (await startUpstream((_request, response) => response.end("film"))).url("/");
    const hostile = openRun(proxy);
    const refused = silentNames("eve").map((name) => fetchThrough(hostile, new URL(`http://${name}:${port}/`)));
    const settled = Promise.allSettled(refused);
    const answer = await fetchThrough(openRun(proxy), new URL(`http://films.test:${port}/`));
    expect(answer).toMatchObject({ status: 200, text: "film" });
    expect(asked.length).toBeLessThanOrEqual(8);
    hostile.close();
    await settled;
  });
});
