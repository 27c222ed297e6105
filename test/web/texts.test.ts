import { expect, it, onTestFinished, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { HostPauses } from "../../src/net/host-pauses.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { describeOptions, describeState } from "../../src/web/tasks/task-texts.ts";
import { formatDay } from "../../src/web/find/day.ts";
import { describeFailure } from "../../src/web/texts.ts";

it("says that a site has asked for a pause", async () => {
  const pauses = new HostPauses();
  pauses.add({ host: "a.test", seconds: 60 });
  const { signal } = new AbortController();
  const waited = pauses.wait("a.test", { what: "GET http://a.test/", maxWaitMs: 0, signal });
  const error = await waited.catch((reason: unknown) => reason as ServiceError);
  expect(describeFailure(error as ServiceError)).toBe("The site has asked for a pause. Trying again may help.");
});

it("says of a task that waits for its next attempt why, and when that is", () => {
  const error = { code: "upstream_unreachable", message: "…", retryable: true } as const;
  const retry_at = new Date().toISOString();
  expect(describeState({ ...newTask("https://a.test/", {}, new Date()), error, retry_at })).toMatch(
    /^The site cannot be reached\. Next attempt at \d/,
  );
});

it.each([
  '"nope" is not listed; available: "https-mp4"',
  "the page has no such format: none is at most 100 pixels high; available: 360",
  "the range is not within the media, which last 20.039 s",
])("says that nothing fits, whatever was chosen: %s", (message) => {
  const failure = new ServiceError("format_unavailable", message);
  expect(describeFailure(failure)).toBe("Nothing there fits what was chosen. Trying again will not help.");
});

it.each([
  ["disk_full", false, "The disk of the service is full. Trying again may help once files are deleted."],
  ["live_stream", false, "it cannot be recorded. Trying again may help once it has begun."],
  ["live_stream", true, "Trying again may help once it has begun."],
  ["quota_exceeded", false, "one of its limits. Trying again may help once files are deleted."],
  ["quota_exceeded", true, "one of its limits. Trying again may help."],
] as const)("says what has to happen before another try can help: %s, %s", (code, retryable, text) => {
  expect(describeFailure({ code, message: "…", retryable })).toContain(text);
});

it("leaves it to the entries of a list what may help, if no error of theirs is retryable", () => {
  const failureOf = (retryable: boolean) => describeFailure({ code: "entries_failed", message: "…", retryable });
  expect(failureOf(false)).toBe("Some entries of this list were not downloaded.");
  expect(failureOf(true)).toBe("Some entries of this list were not downloaded. Trying again may help.");
});

it("writes a date without a time as the same day in each time zone", () => {
  vi.stubEnv("TZ", "America/Los_Angeles");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(new Date("2026-03-02").getDate()).toBe(1);
  expect(formatDay("2026-03-02")).toBe(formatDay("2026-03-02T12:00:00Z"));
});

it("says which codecs a download prefers", () => {
  expect(describeOptions({ preferred_codecs: ["h264", "vp9"] })).toBe("best format, in h264, vp9 if possible");
  expect(describeOptions({ preferred_codecs: [], max_height: 720 })).toBe("at most 720p");
  expect(describeOptions({ preferred_codecs: ["h264"], audio_only: true })).toBe("audio only");
  expect(describeOptions({ preferred_codecs: ["h264"], format_id: "22" })).toBe("format 22");
});

it("says what is left out of a download, or marked in it", () => {
  expect(describeOptions({ skip: ["sponsor", "intro"] })).toBe("best format, without: sponsor, intro");
  expect(describeOptions({ skip: ["sponsor"], skip_mode: "chapters" })).toBe("best format, chapters: sponsor");
});

it.each([
  ["unauthorized", "This key is not valid."],
  ["invalid_url", "This is not the address of a web page."],
  ["playlist", "This is a list: choose what to download of it."],
] as const)("says nothing of another try where something else is to be given: %s", (code, sentence) => {
  expect(describeFailure(new ServiceError(code, "…"))).toBe(sentence);
});
