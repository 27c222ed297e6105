import { type ComponentChild, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../button.ts";
import type { ExtraProps } from "./finding.ts";
import { describeFormats, type FormatRow, joinTexts } from "./format-rows.ts";

const shownAtFirst = 12;

/** The formats of a page, each with a button that downloads exactly it. */
export function FormatTable({ info, finder, extras }: ExtraProps): ComponentChild {
  const [isWhole, setWhole] = useState(false);
  const body = useRef<HTMLTableSectionElement>(null);
  // The button that was pressed is gone.
  useLayoutEffect(() => {
    if (isWhole) body.current?.rows[shownAtFirst]?.querySelector("button")?.focus();
  }, [isWhole]);
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
        { ref: body },
        shown.map((row) => h(Row, { key: row.format.format_id, row, info, finder, extras })),
      ),
    ),
    hidden > 0 &&
      h("p", { key: "more" }, h("button", { onClick: () => setWhole(true) }, `Show ${hidden} more formats`)),
  ];
}

const columns = ["Quality", "Size", "Codecs", "Language", "Download"].map((name) =>
  h("th", { key: name, scope: "col" }, name),
);

function Row({ row, info, finder, extras }: ExtraProps & { row: FormatRow }): ComponentChild {
  const { format, quality, note, size, codecs, languages } = row;
  const button = {
    "aria-label": `Download ${joinTexts(quality, note, size)}`,
    isDisabled: finder.adding.value,
    onClick: () => finder.download(info.url, { format_id: format.format_id, ...extras }, info.title ?? info.url),
  };
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, quality, note !== "" && h("span", { class: "muted" }, ` ${note}`)),
    h("td", {}, size),
    h("td", {}, codecs),
    h("td", {}, languages),
    h("td", {}, format.has_drm ? "Protected by DRM" : h(Button, button, "Download")),
  );
}
