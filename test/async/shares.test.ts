import { describe, expect, it } from "vitest";
import { type Release, Shares } from "../../src/async/shares.ts";

const never = new AbortController().signal;

/** Takes as many places as the owner gets. */
function takeAll(shares: Shares, owner: string): Release[] {
  const taken: Release[] = [];
  for (let release = shares.take(owner); release !== undefined; release = shares.take(owner)) taken.push(release);
  return taken;
}

describe("shares", () => {
  it("give all places to an owner who is alone", () => {
    const shares = new Shares(8);
    expect(shares.free("anna")).toBe(8);
    expect(takeAll(shares, "anna")).toHaveLength(8);
    expect(shares.free("anna")).toBe(0);
  });

  it("give an owner its share although another has all places, and the other no more before it has less than its own", () => {
    const shares = new Shares(8);
    const eves = takeAll(shares, "eve");
    expect(shares.free("bob")).toBe(4);
    expect(takeAll(shares, "bob")).toHaveLength(4);
    for (const release of eves.splice(0, 4)) release();
    expect(shares.taken).toBe(8);
    expect(shares.take("eve")).toBeUndefined();
    eves.pop()?.();
    expect(shares.take("eve")).toBeDefined();
  });

  it("give every owner a first place, however many there are", () => {
    const shares = new Shares(8);
    takeAll(shares, "eve");
    for (let n = 0; n < 100; n += 1) expect(shares.take(`owner ${n}`)).toBeDefined();
    expect(shares.take("owner 0")).toBeUndefined();
    expect(shares.taken).toBe(108);
  });

  it("are at most twice as many as the total, and first places", () => {
    const shares = new Shares(64);
    const owners = Array.from({ length: 32 }, (_, n) => `owner ${n}`);
    for (const owner of owners) takeAll(shares, owner);
    expect(shares.taken).toBeGreaterThan(64);
    expect(shares.taken).toBeLessThan(128 + 32);
  });

  it("count a place that is given back once, however often that is done", () => {
    const shares = new Shares(2);
    const [first] = takeAll(shares, "anna");
    first?.();
    first?.();
    expect(shares.taken).toBe(1);
  });

  it("let calls wait, and give free places to the owner that has the fewest, each owner's in their order", async () => {
    const shares = new Shares(4);
    const eves = takeAll(shares, "eve");
    const bobs = takeAll(shares, "bob");
    expect([eves.length, bobs.length]).toEqual([4, 2]);
    const order: string[] = [];
    const wait = (owner: string, name: string) => shares.wait(owner, never).then(() => order.push(name));
    const waits = [wait("eve", "eve 1"), wait("bob", "bob 1"), wait("bob", "bob 2")];
    bobs.pop()?.();
    await waits[1];
    for (const release of eves.splice(0, 3)) release();
    await waits[0];
    expect(order).toEqual(["bob 1", "eve 1"]);
    expect(shares.taken).toBe(4);
  });

  it("never exceed a firm total, and by a spare place only for an owner that has none while another has several", () => {
    const firm = new Shares(2, "firm");
    expect([takeAll(firm, "eve").length, takeAll(firm, "bob").length]).toEqual([2, 0]);
    const spare = new Shares(2, "spare");
    const counts = ["eve", "bob", "anna"].map((owner) => takeAll(spare, owner).length);
    expect(counts).toEqual([2, 1, 0]);
    const one = new Shares(1, "spare");
    expect([takeAll(one, "eve").length, takeAll(one, "bob").length]).toEqual([1, 0]);
  });

  it("leave half of what is free to others if each owner leaves half, and are never more than the total", () => {
    const shares = new Shares(15, "half");
    const counts = ["eve", "bob", "carl", "dora", "anna"].map((owner) => takeAll(shares, owner).length);
    expect(counts).toEqual([8, 4, 2, 1, 0]);
    expect(shares.taken).toBe(15);
  });

  it("give places to waiting owners in turn, however many calls of others wait for longer", async () => {
    const shares = new Shares(1, "firm");
    const [first] = takeAll(shares, "eve");
    const order: string[] = [];
    const run = (owner: string) => shares.run(owner, never, async () => void order.push(owner));
    const runs = ["eve", "eve", "eve", "eve", "bob", "bob", "anna"].map(run);
    first?.();
    await Promise.all(runs);
    expect(order).toEqual(["eve", "bob", "anna", "eve", "bob", "eve", "eve"]);
  });

  it("give no place to a call that was aborted", async () => {
    const shares = new Shares(1);
    const [release] = takeAll(shares, "anna");
    const abort = new AbortController();
    const aborted = shares.wait("anna", abort.signal);
    const waiting = shares.wait("anna", never);
    abort.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await expect(shares.wait("anna", abort.signal)).rejects.toThrow("enough");
    release?.();
    (await waiting)();
    expect(shares.taken).toBe(0);
  });

  it("have a place back once work has ended, however it ends", async () => {
    const shares = new Shares(1);
    const work = Promise.withResolvers<string>();
    const running = shares.run("anna", never, () => work.promise);
    await Promise.resolve();
    expect(shares.taken).toBe(1);
    work.resolve("done");
    expect(await running).toBe("done");
    await expect(shares.run("anna", never, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(shares.taken).toBe(0);
  });

  it("give nobody a place of none", () => {
    expect(new Shares(0).take("anna")).toBeUndefined();
  });
});
