import { expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { HostPauses } from "../../src/net/host-pauses.ts";
import { describeFailure } from "../../src/web/texts.ts";

it("says that a site has asked for a pause", async () => {
  const pauses = new HostPauses();
  pauses.add({ host: "a.test", seconds: 60 });
  const { signal } = new AbortController();
  const waited = pauses.wait("a.test", { what: "GET http://a.test/", maxWaitMs: 0, signal });
  const error = await waited.catch((reason: unknown) => reason as ServiceError);
  expect(describeFailure(error as ServiceError)).toBe("The site has asked for a pause. Trying again may help.");
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
  ["unauthorized", "This key is not valid."],
  ["invalid_url", "This is not the address of a web page."],
  ["playlist", "This is a list: choose what to download of it."],
] as const)("says nothing of another try where something else is to be given: %s", (code, sentence) => {
  expect(describeFailure(new ServiceError(code, "…"))).toBe(sentence);
});
