import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { createFormatIds, findFormat } from "../../src/manifests/manifest.ts";

const url = new URL("https://media.example.com/main.mpd");
const long = "x".repeat(300);
const { formats } = openMpd(
  '<MPD><Period><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Number$" duration="4"/>' +
    ["v", "v", "v-1", long, long].map((id, n) => `<Representation id="${id}" bandwidth="${n}"/>`).join("") +
    "</AdaptationSet></Period></MPD>",
  url,
).listing;
const ids = formats.map(({ format_id }) => format_id);

test("an id has at most 255 characters, and a unique one is unchanged", () => {
  expect(Math.max(...ids.map((id) => id.length))).toBeLessThanOrEqual(255);
  expect(new Set(ids).size).toBe(5);
  const unique = createFormatIds();
  expect(ids.map((id) => unique(id))).toEqual(ids);
});

test("a format of two manifests with equal ids is found in its manifest", () => {
  const unique = createFormatIds();
  const inRecord = [...formats, ...formats].map((format) => ({
    format,
    formatId: unique(format.format_id),
  }));
  expect(new Set(inRecord.map(({ formatId }) => formatId)).size).toBe(10);
  for (const { format, formatId } of inRecord.filter((each) => each.formatId.length < 240)) {
    expect(findFormat(formats, formatId)).toBe(format);
  }
  expect(findFormat(formats, "dash-w")).toBeUndefined();
});
