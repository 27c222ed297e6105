import { describe, expect, test } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import { createRunnerHarness, type RunnerHarnessOptions } from "./harness.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { pageOf } from "./resolver.ts";
import { createPlaylist, entriesUpTo, entryUrl, playlistUrl } from "./playlists.ts";
import { membersOf } from "../contracts/task-store/collections.ts";

function harnessFor(count: number, options: RunnerHarnessOptions = {}, sliceSize = 2) {
  const playlist = createPlaylist(entriesUpTo(count), { sliceSize });
  return { ...playlist, ...createRunnerHarness({ resolver: playlist.resolver, ...options }) };
}

describe("a task for the entries of a playlist", () => {
  test("becomes a collection whose members are all entries, in order, each downloaded", async () => {
    const harness = harnessFor(5);
    const { id } = await harness.add(playlistUrl, { entries: "all", max_height: 720 });
    harness.runner.start();
    const ended = await harness.until(id, "succeeded");
    expect(ended).toMatchObject({
      kind: "collection",
      counts: { queued: 0, running: 0, succeeded: 5, failed: 0, canceled: 0 },
      info: { title: "A list", entries_count: 5, formats: [] },
      file: null,
      error: null,
    });
    expect(ended.info?.entries).toBeUndefined();
    expect(ended.growth).toBeUndefined();
    const members = await membersOf(harness, id);
    expect(members.map(({ url }) => url)).toEqual([1, 2, 3, 4, 5].map(entryUrl));
    expect(members.map(({ collection }) => collection)).toEqual(
      [1, 2, 3, 4, 5].map((index) => ({ id, index, title: "A list", entry: { title: `Part ${index}` } })),
    );
    for (const { state, options, file } of members) {
      expect({ state, options }).toEqual({ state: "succeeded", options: { max_height: 720 } });
      expect(file).not.toBeNull();
    }
    expect(harness.cursors).toEqual(["", "2", "4"]);
  });

  test("is downloaded itself if its page has a video beside the playlist", async () => {
    const { resolver: lists } = createPlaylist(entriesUpTo(3));
    const resolver: Resolver = {
      ...lists,
      resolve: async (url, context) => ({ ...(await lists.resolve(url, context)), formats: pageOf(url).formats }),
    };
    const harness = createRunnerHarness({ resolver });
    const { id } = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    expect(await harness.until(id, "succeeded")).toMatchObject({ file: { mime_type: "video/mp4" } });
    expect(await membersOf(harness, id)).toEqual([]);
  });

  test.each([
    ["player", new URL("https://videos.example.com/")],
    ["json-ld", new URL("https://videos.example.com/")],
    ["feed", undefined],
    ["yt-dlp", undefined],
  ] as const)("sends its members' sites the origin of its page if that is one (listed by %s)", async (source, sent) => {
    const { resolver: lists } = createPlaylist(entriesUpTo(1));
    const referrers: (URL | undefined)[] = [];
    const resolver: Resolver = {
      ...lists,
      async resolve(url, context) {
        const found = await lists.resolve(url, context);
        if (url.href !== playlistUrl) referrers.push(context.referrer);
        return url.href === playlistUrl ? { ...found, sources: { entries: source } } : found;
      },
    };
    const harness = createRunnerHarness({ resolver });
    await harness.run("succeeded", playlistUrl, { entries: "all" });
    expect(referrers).toEqual([sent]);
  });

  test("names its members as the playlist does where their pages are files, which have no titles", async () => {
    const thumbnail = "https://videos.example.com/1.jpg";
    const known = { title: "Episode 1", uploaded_at: "2026-06-01", uploader: "Ada", thumbnail };
    const entries = entriesUpTo(4).map((entry, n) => (n === 2 ? entry : { ...entry, ...known }));
    const { resolver: lists } = createPlaylist(entries, { sliceSize: 4 });
    const files = new Set([1, 3, 4].map(entryUrl));
    const resolver: Resolver = {
      ...lists,
      async resolve(url, context) {
        const found = await lists.resolve(url, context);
        const own = url.href === entryUrl(4) ? { ...found, uploader: "Bea" } : found;
        return files.has(url.href) ? { ...own, title: "default", sources: { title: "media" } } : own;
      },
    };
    const harness = createRunnerHarness({ resolver });
    const { id } = await harness.run("succeeded", playlistUrl, { entries: "all" });
    const members = await membersOf(harness, id);
    const thumbnails = [{ url: known.thumbnail, width: null, height: null }];
    expect(members.map(({ info }) => info)).toMatchObject([
      {
        title: known.title,
        uploaded_at: known.uploaded_at,
        uploader: known.uploader,
        thumbnails,
        sources: { title: "playlist", uploaded_at: "playlist", uploader: "playlist", thumbnails: "playlist" },
      },
      { title: "A film", uploaded_at: known.uploaded_at },
      { title: "Part 3", uploaded_at: null, uploader: null, thumbnails: [] },
      { title: "Episode 1", uploader: "Bea" },
    ]);
    expect(members.map(({ file }) => file?.name.replace(/\..*/, ""))).toEqual([
      "Episode 1",
      "A film",
      "Part 3",
      "Episode 1",
    ]);
  });

  test("on a page with one video is a task like any other", async () => {
    const harness = harnessFor(5);
    const ended = await harness.run("succeeded", entryUrl(1), { entries: "all" });
    expect(ended.kind).toBeUndefined();
    expect(ended.file).not.toBeNull();
  });

  test.each<[string | string[], number[], string[]]>([
    ["2", [2], [""]],
    ["1,3-4", [1, 3, 4], ["", "2"]],
    ["4-", [4, 5, 6], ["", "2", "4"]],
    ["2-3,3,6", [2, 3, 6], ["", "2", "4"]],
    [
      [entryUrl(4), entryUrl(1)],
      [1, 4],
      ["", "2"],
    ],
  ])("for %j has just these, and reads no further than they are", async (entries, wanted, cursors) => {
    const harness = harnessFor(6);
    const { id } = await harness.run("succeeded", playlistUrl, { entries });
    const members = await membersOf(harness, id);
    expect(members.map(({ collection }) => collection?.index)).toEqual(wanted);
    expect(harness.cursors).toEqual(cursors);
  });

  test.each<[string | string[], string]>([
    ["7-9", 'none of the 6 entries of https://videos.example.com/list that can be fetched is among "7-9"'],
    [[entryUrl(9)], "none of the 6 entries"],
  ])("fails for %j if none of them is there", async (entries, message) => {
    const harness = harnessFor(6);
    const { error } = await harness.run("failed", playlistUrl, { entries });
    expect(error).toMatchObject({ code: "no_media", message: expect.stringContaining(message) });
  });

  test.each<[string | string[], string]>([
    ["5-6,8,10-", "the playlist has 6 entries, and none at 8,10-"],
    [[entryUrl(2), entryUrl(9)], "1 of 2 URLs are not in the playlist"],
  ])("says which of %j are not there", async (entries, message) => {
    const harness = harnessFor(6);
    const { warnings } = await harness.run("succeeded", playlistUrl, { entries });
    expect(warnings).toEqual([{ code: "entries_missing", message }]);
  });

  test("for a URL that the playlist has twice has one member, and says that another one is not there", async () => {
    const { resolver } = createPlaylist([...entriesUpTo(1), ...entriesUpTo(2)]);
    const harness = createRunnerHarness({ resolver });
    const { warnings, counts } = await harness.run("succeeded", playlistUrl, { entries: [entryUrl(1), entryUrl(9)] });
    expect(warnings).toEqual([{ code: "entries_missing", message: "1 of 2 URLs are not in the playlist" }]);
    expect(counts).toMatchObject({ succeeded: 1 });
  });

  test("leaves out entries that have no URL of a page, and says which", async () => {
    const entries = entriesUpTo(3).map((entry, n) => (n === 1 ? { ...entry, url: "javascript:alert(1)" } : entry));
    const { resolver } = createPlaylist(entries);
    const harness = createRunnerHarness({ resolver });
    const { id, warnings } = await harness.run("succeeded", playlistUrl, { entries: "all" });
    expect(warnings).toEqual([{ code: "entries_missing", message: "entries without a URL that can be fetched: 2" }]);
    expect((await membersOf(harness, id)).map(({ url }) => url)).toEqual([1, 3].map(entryUrl));
  });

  test.each([
    [6, undefined],
    [5, [{ code: "entries_limited", message: "only the first 5 entries are members (MAX_ENTRIES)" }]],
    [4, [{ code: "entries_limited", message: "only the first 4 entries are members (MAX_ENTRIES)" }]],
  ])("has at most MAX_ENTRIES members: %d of 6", async (maxEntries, warnings) => {
    const harness = harnessFor(6, { maxEntries });
    const { id } = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    const ended = await harness.until(id, "succeeded");
    expect(await membersOf(harness, id)).toHaveLength(maxEntries);
    expect(ended.warnings ?? []).toEqual(warnings ?? []);
  });

  test.each([
    [[3], 2, []],
    [[3], 6, []],
    [[3, 6], 2, ["entries_limited"]],
    [[3, 6], 6, ["entries_limited"]],
  ])(
    "for the URLs of entries %j of 6, in slices of %d, is limited by MAX_ENTRIES 4 if one comes later",
    async (...row) => {
      const [wanted, sliceSize, codes] = row;
      const harness = harnessFor(6, { maxEntries: 4 }, sliceSize);
      const { id, warnings = [] } = await harness.run("succeeded", playlistUrl, { entries: wanted.map(entryUrl) });
      expect((await membersOf(harness, id)).map(({ url }) => url)).toEqual([entryUrl(3)]);
      expect(warnings.map(({ code }) => code)).toEqual(codes);
    },
  );

  test("without `entries` fails, and says how many there are", async () => {
    const harness = harnessFor(5);
    const { error } = await harness.run("failed", playlistUrl);
    expect(error).toMatchObject({ code: "playlist", message: expect.stringContaining("is a playlist of 5 entries") });
  });

  test("posted again fetches only what is new; members of both survive the deletion of one", async () => {
    const entries = entriesUpTo(3);
    const { resolver } = createPlaylist(entries);
    const harness = createRunnerHarness({ resolver });
    const first = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    await harness.until(first.id, "succeeded");
    entries.push(...entriesUpTo(6).slice(3));
    const second = await harness.add(playlistUrl, { entries: "all" });
    await harness.until(second.id, "succeeded");
    const [before, after] = [await membersOf(harness, first.id), await membersOf(harness, second.id)];
    expect(after.slice(0, 3)).toEqual(before);
    expect(after).toHaveLength(6);
    await harness.runner.stop();
    expect(harness.log.filter(({ msg }) => msg === "run succeeded")).toHaveLength(6);
    await harness.store.delete(first.id);
    expect(await membersOf(harness, second.id)).toEqual(after);
    expect(harness.files.results()).toEqual(expect.arrayContaining(after.map(({ id }) => id)));
  });

  test("posted again fetches no entry that has another URL now, if the playlist says which video it is", async () => {
    const entries = entriesUpTo(1).map((entry) => ({ ...entry, video: { extractor: "feed", id: "a" } }));
    const harness = createRunnerHarness({ resolver: createPlaylist(entries).resolver });
    const first = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    await harness.until(first.id, "succeeded");
    entries[0]!.url = entryUrl(2);
    const second = await harness.add(playlistUrl, { entries: "all" });
    await harness.until(second.id, "succeeded");
    expect(await membersOf(harness, second.id)).toEqual(await membersOf(harness, first.id));
  });

  test("with `if_exists: new` fetches every entry again", async () => {
    const harness = harnessFor(2);
    for (const _ of [1, 2]) {
      await harness.run("succeeded", playlistUrl, { entries: "all", if_exists: "new" });
    }
    await harness.runner.stop();
    expect(harness.log.filter(({ msg }) => msg === "run succeeded")).toHaveLength(4);
  });
});

describe("a collection that grows", () => {
  test("lets its first entries run before its last ones are read", async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const beforeSlice = async (cursor: string) => (cursor === "2" ? held : undefined);
    const { resolver } = createPlaylist(entriesUpTo(4), { beforeSlice });
    const harness = createRunnerHarness({ resolver });
    const { id } = await harness.run(({ counts }) => counts?.succeeded === 2, playlistUrl, { entries: "all" });
    expect(await harness.store.get(id)).toMatchObject({ state: "running", growth: { slice: { next: "2", made: 2 } } });
    release();
    await harness.until(id, "succeeded");
  });

  test("goes on after a failure with the slice that failed", async () => {
    let failures = 1;
    const { resolver, cursors } = createPlaylist(entriesUpTo(6), {
      async beforeSlice(cursor) {
        if (cursor !== "2" || failures === 0) return;
        failures -= 1;
        throw new ServiceError("upstream_timeout", "too slow");
      },
    });
    const harness = createRunnerHarness({ resolver });
    const ended = await harness.run("succeeded", playlistUrl, { entries: "all" });
    expect(ended).toMatchObject({ counts: { succeeded: 6 }, error: null });
    expect(cursors).toEqual(["", "2", "2", "4"]);
  });

  test("and fails for good has failed once its members have ended, and a retry goes on", async () => {
    let isBroken = true;
    const { resolver } = createPlaylist(entriesUpTo(4), {
      async beforeSlice(cursor) {
        if (cursor === "2" && isBroken) throw new ServiceError("upstream_invalid", "no list");
      },
    });
    const harness = createRunnerHarness({ resolver });
    const { id } = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    const failed = await harness.until(id, "failed");
    expect(failed).toMatchObject({ error: { code: "upstream_invalid" }, counts: { succeeded: 2 } });
    isBroken = false;
    await harness.store.update(id, { state: "queued", attempts: 0, error: null, file: null });
    const ended = await harness.until(id, "succeeded");
    expect(ended).toMatchObject({ counts: { succeeded: 4 }, error: null });
  });

  test("is given back when the service stops, and goes on where it was", async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const playlist = createPlaylist(entriesUpTo(4), {
      async beforeSlice(cursor) {
        if (cursor !== "2") return;
        reach();
        await held;
      },
    });
    const harness = createRunnerHarness({ resolver: playlist.resolver });
    const { id } = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    await reached;
    const stopped = harness.runner.stop();
    release();
    await stopped;
    expect(await harness.store.get(id)).toMatchObject({ state: "queued", growth: { slice: { made: 2 } } });
    const next = createRunnerHarness({ store: harness.store, resolver: playlist.resolver });
    next.runner.start();
    await next.until(id, "succeeded");
    expect(await membersOf(next, id)).toHaveLength(4);
  });

  test.each([
    { list: [1, 2, 3, 4, 5, 6], wanted: [1, 3], members: [1, 3], codes: [], reads: ["2"] },
    { list: [1, 2, 1, 3, 4, 5], wanted: [1, 9], members: [1], codes: ["entries_limited"], reads: ["2", "4"] },
    { list: [1, 2, 1, 3], wanted: [1, 9], members: [1], codes: ["entries_missing"], reads: ["2"] },
  ])("for URLs of $list goes on with those that it has not found: $wanted", async ({ list, wanted, ...expected }) => {
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const entries = list.map((n) => entriesUpTo(6)[n - 1]!);
    const playlist = createPlaylist(entries, {
      async beforeSlice(cursor) {
        if (cursor !== "2") return;
        reach();
        await held;
      },
    });
    const harness = createRunnerHarness({ resolver: playlist.resolver });
    const { id } = await harness.add(playlistUrl, { entries: wanted.map(entryUrl) });
    harness.runner.start();
    await reached;
    const stopped = harness.runner.stop();
    release();
    await stopped;
    playlist.cursors.length = 0;
    const next = createRunnerHarness({ store: harness.store, resolver: playlist.resolver, maxEntries: 5 });
    next.runner.start();
    const { warnings = [] } = await next.until(id, "succeeded");
    expect((await membersOf(next, id)).map(({ url }) => url)).toEqual(expected.members.map(entryUrl));
    expect(warnings.map(({ code }) => code)).toEqual(expected.codes);
    expect(playlist.cursors).toEqual(expected.reads);
  });

  test("waits while its key may queue no more, and neither fails nor uses up attempts", async () => {
    const harness = harnessFor(3, { maxAttempts: 1 });
    const key = { name: "anna", admin: false, limits: { max_queued: 1 } };
    await harness.store.keys.add(accessKeyOf(newSecret(), key, new Date()));
    const { id } = await harness.store.create(newTask(playlistUrl, { entries: "all" }, new Date(), "anna"));
    harness.runner.start();
    const ended = await harness.until(id, "succeeded");
    expect(ended).toMatchObject({ counts: { succeeded: 3 }, attempts: 1 });
    const members = await membersOf(harness, id);
    expect(members.every(({ owner }) => owner === "anna")).toBe(true);
    await harness.runner.stop();
    expect(harness.log.some(({ msg }) => String(msg).startsWith("collection waits"))).toBe(true);
  });

  test("that is canceled reads and runs nothing more, and a retry brings all back", async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const playlist = createPlaylist(entriesUpTo(6), {
      async beforeSlice(cursor) {
        if (cursor !== "4") return;
        reach();
        await held;
      },
    });
    const harness = createRunnerHarness({ resolver: playlist.resolver, concurrency: 1 });
    const { id } = await harness.add(playlistUrl, { entries: "all" });
    harness.runner.start();
    await reached;
    const canceled = await harness.store.update(id, { state: "canceled" });
    expect(canceled).toMatchObject({ state: "canceled", counts: { canceled: 4, queued: 0, running: 0 } });
    release();
    await harness.until(id, "canceled");
    await harness.store.update(id, { state: "queued", attempts: 0, error: null, file: null });
    const ended = await harness.until(id, "succeeded");
    expect(ended).toMatchObject({ counts: { succeeded: 6, canceled: 0 } });
    expect(await membersOf(harness, id)).toHaveLength(6);
  });
});
