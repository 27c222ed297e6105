import { describe, expect, it } from "vitest";
import { HostPauses } from "../../src/net/host-pauses.ts";
import { get, localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

/** Starts a host whose first response has this status and `Retry-After`; the others are 200. */
async function startBusyHost(status: number, retryAfter: string | undefined) {
  let requests = 0;
  const upstream = await startUpstream((_request, response) => {
    requests += 1;
    if (requests > 1) response.end("at last");
    else response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end();
  });
  return { url: upstream.url("/"), host: upstream.url("/").host, count: () => requests };
}

const inAMinute = () => new Date(Date.now() + 60_000).toUTCString();

describe("a host that asks for a pause", () => {
  it.each([
    [429, "60"],
    [503, "60"],
    [503, inAMinute()],
  ])("is left alone after %i with Retry-After: %s, and others are not", async (status, retryAfter) => {
    const client = localClient();
    const busy = await startBusyHost(status, retryAfter);
    const other = await startUpstream((_request, response) => response.end("here"));
    await expect(get(client, busy.url)).rejects.toMatchObject({ upstreamStatus: status, isUntried: false });
    const refusal = { code: "upstream_status", retryable: true, isUntried: true };
    const message = expect.stringMatching(
      /^GET http:\S+ was not sent: the host asked for a pause \(Retry-After\), of which \d+ s are left$/,
    );
    await expect(get(client, busy.url)).rejects.toMatchObject({ ...refusal, message });
    expect(busy.count()).toBe(1);
    expect(await read(client, other.url("/"))).toBe("here");
  });

  it.each([
    [429, undefined],
    [503, "soon"],
    [500, "60"],
    [404, "60"],
  ])("is asked again after %i with Retry-After: %s, which asks for none", async (status, retryAfter) => {
    const client = localClient();
    const host = await startBusyHost(status, retryAfter);
    await expect(get(client, host.url)).rejects.toMatchObject({ upstreamStatus: status });
    expect(await read(client, host.url)).toBe("at last");
  });

  it("gets the next request when the pause is over, if the client may wait so long", async () => {
    const waits: boolean[] = [];
    const pauses = new HostPauses((isWaiting) => waits.push(isWaiting));
    const client = localClient({ pauses, maxPauseMs: 30_000 });
    const host = await startBusyHost(429, "1");
    await expect(get(client, host.url)).rejects.toMatchObject({ upstreamStatus: 429 });
    expect(pauses.list()).toEqual([{ host: host.host, seconds: expect.any(Number) }]);
    expect(await Promise.all([read(client, host.url), read(client, host.url)])).toEqual(["at last", "at last"]);
    expect([waits, pauses.list()]).toEqual([[true, false], []]);
  });

  it("is left alone by the redirects of others", async () => {
    const client = localClient();
    const busy = await startBusyHost(503, "60");
    const other = await startUpstream((_request, response) =>
      response.writeHead(302, { location: busy.url.href }).end(),
    );
    await expect(get(client, other.url("/"))).rejects.toMatchObject({ isUntried: false });
    await expect(get(client, other.url("/"))).rejects.toMatchObject({ isUntried: true });
    expect(busy.count()).toBe(1);
  });

  it("no longer waits when the request is aborted", async () => {
    const pauses = new HostPauses();
    const client = localClient({ pauses, maxPauseMs: 90_000 });
    const host = await startBusyHost(200, undefined);
    pauses.add({ host: host.host, seconds: 60 });
    const abort = new AbortController();
    const request = get(client, host.url, { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(request).rejects.toThrow("enough");
    expect(host.count()).toBe(0);
  });
});

describe("the pauses of a process", () => {
  it("last an hour at most, and the longer one counts", () => {
    const pauses = new HostPauses();
    pauses.add({ host: "a.test", seconds: 86_400 });
    pauses.add({ host: "a.test", seconds: 1 });
    expect(pauses.leftS("a.test")).toBeGreaterThan(3_000);
    expect(pauses.leftS("a.test")).toBeLessThanOrEqual(3_600);
    expect(pauses.leftS("b.test")).toBe(0);
  });

  it("tell listeners what is new to them", () => {
    const pauses = new HostPauses();
    const heard: string[] = [];
    const stop = pauses.subscribe(({ host }) => heard.push(host));
    pauses.add({ host: "a.test", seconds: 60 });
    pauses.add({ host: "a.test", seconds: 30 });
    pauses.learn({ host: "b.test", seconds: 60 });
    stop();
    pauses.add({ host: "c.test", seconds: 60 });
    expect(heard).toEqual(["a.test"]);
    expect(pauses.list().map(({ host }) => host)).toEqual(["a.test", "b.test", "c.test"]);
  });

  it("tell listeners how long the host was to be left alone anyway", () => {
    const pauses = new HostPauses();
    const known: number[] = [];
    pauses.subscribe((_pause, knownS) => known.push(Math.ceil(knownS)));
    for (const seconds of [20, 600, 700]) pauses.add({ host: "a.test", seconds });
    expect(known).toEqual([0, 20, 600]);
  });

  it("are of at most 10,000 hosts, the latest ones", () => {
    const pauses = new HostPauses();
    for (let n = 0; n < 10_010; n += 1) pauses.add({ host: `${n}.test`, seconds: 60 });
    expect(pauses.list()).toHaveLength(10_000);
    expect(pauses.leftS("10009.test")).toBeGreaterThan(0);
  });
});
