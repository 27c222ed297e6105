import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import type { MediaRange } from "../../model/task.ts";
import { parseRanges } from "./part-times.ts";

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
