import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { FoundProps } from "./finding.ts";
import { describeFormats, type FormatRow, joinTexts } from "./format-rows.ts";

const shownAtFirst = 12;

/** The formats of a page, each with a button that downloads exactly it. */
export function FormatTable({ info, finder }: FoundProps): ComponentChild {
  const [isWhole, setWhole] = useState(false);
  const rows = describeFormats(info);
  const shown = isWhole ? rows : rows.slice(0, shownAtFirst);
  const hidden = rows.length - shown.length;
  return [
    h(
      "table",
      { key: "table", class: "formats" },
      h("caption", { class: "spoken" }, "Formats, best first"),
      h("thead", {}, h("tr", {}, columns)),
      h(
        "tbody",
        {},
        shown.map((row) => h(Row, { key: row.format.format_id, row, info, finder })),
      ),
    ),
    hidden > 0 &&
      h("p", { key: "more" }, h("button", { onClick: () => setWhole(true) }, `Show ${hidden} more formats`)),
  ];
}

const columns = ["Quality", "Size", "Codecs", "Language", "Download"].map((name) =>
  h("th", { key: name, scope: "col" }, name),
);

function Row({ row, info, finder }: FoundProps & { row: FormatRow }): ComponentChild {
  const { format, quality, note, size, codecs, languages } = row;
  const button = {
    "aria-label": `Download ${joinTexts(quality, note, size)}`,
    disabled: finder.adding.value,
    onClick: () => finder.download(info.url, { format_id: format.format_id }, info.title ?? info.url),
  };
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, quality, note !== "" && h("span", { class: "muted" }, ` ${note}`)),
    h("td", {}, size),
    h("td", {}, codecs),
    h("td", {}, languages),
    h("td", {}, format.has_drm ? "Protected by DRM" : h("button", button, "Download")),
  );
}
