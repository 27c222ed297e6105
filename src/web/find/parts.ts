import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { MediaRange } from "../../model/task.ts";

interface PartsProps {
  /** Called with what was typed; undefined: the whole video. */
  onChange: (ranges: MediaRange[] | undefined) => void;
}

/** Lets people type which parts of the video they want; folded away at first. */
export function Parts({ onChange }: PartsProps): ComponentChild {
  const [isWrong, setWrong] = useState(false);
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const ranges = parseRanges(currentTarget.value);
    setWrong(ranges === null);
    onChange(ranges ?? undefined);
  };
  const field = { id: "parts", type: "text", inputMode: "text", autocomplete: "off", placeholder: "1:20-2:45, 10:00-" };
  const help = isWrong
    ? "Write each part as 1:20-2:45, in order, with commas between them. As it is now, all of it is downloaded."
    : "Without an end, a part goes on to the end.";
  return h(
    "details",
    {},
    h("summary", {}, "Only parts of it"),
    h("label", { for: "parts" }, "Parts"),
    " ",
    h("input", { ...field, "aria-describedby": "parts-help", "aria-invalid": isWrong, onInput }),
    h("p", { id: "parts-help", class: isWrong ? "failure" : "muted", role: "status" }, help),
  );
}

/**
 * Returns the parts that a text as `1:20-2:45, 10:00-` names; undefined for an empty one, `null` if it cannot be read, or
 * the parts are not in order and apart.
 */
export function parseRanges(text: string): MediaRange[] | undefined | null {
  if (text.trim() === "") return undefined;
  const ranges: MediaRange[] = [];
  for (const part of text.split(",")) {
    const [, from = "", to = ""] = /^\s*([\d:.]*)\s*[-–]\s*([\d:.]*)\s*$/.exec(part) ?? [];
    const start = from === "" && to !== "" ? 0 : parseTime(from);
    const end = to === "" ? null : parseTime(to);
    const isApart = start !== undefined && start >= (ranges.length === 0 ? 0 : (ranges.at(-1)?.end ?? Infinity));
    if (end === undefined || !isApart || (end !== null && end <= start)) return null;
    ranges.push({ start, end });
  }
  return ranges;
}

/** Returns the seconds of `90`, `1:30` or `1:02:03.5`; undefined if it is nothing of that kind. */
function parseTime(text: string): number | undefined {
  if (!/^(?:\d+:){0,2}\d+(?:\.\d+)?$/.test(text)) return undefined;
  return text.split(":").reduce((seconds, part) => 60 * seconds + Number(part), 0);
}
