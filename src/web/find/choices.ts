import { type ComponentChild, h, type TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type { Entry } from "../../model/page-info.ts";
import type { TaskFailure, TaskOptions } from "../../model/task.ts";
import { describeFailure, formatDuration } from "../texts.ts";
import type { ChoicesProps, Finder } from "./finding.ts";

const qualities: Record<string, TaskOptions> = {
  "The best": {},
  "At most 1080p": { max_height: 1080 },
  "At most 720p": { max_height: 720 },
  "At most 480p": { max_height: 480 },
  "At most 360p": { max_height: 360 },
  "Only the audio": { audio_only: true },
};

/** Several pages, of which those that are chosen are downloaded. What was created leaves the list. */
export function Choices({ entries, areChosen, finder }: ChoicesProps): ComponentChild {
  const [created, setCreated] = useState<ReadonlySet<string>>(new Set());
  const [left, setLeft] = useState<ReadonlySet<string>>(
    () => new Set(areChosen ? [] : entries.map(({ url }) => url)),
  );
  const [failures, setFailures] = useState<ReadonlyMap<string, TaskFailure>>(new Map());
  const [quality, setQuality] = useState("The best");
  const shown = entries.filter(({ url }) => !created.has(url));
  const chosen = shown.map(({ url }) => url).filter((url) => !left.has(url));
  const choose = (urls: readonly string[], isChosen: boolean): void => {
    const others = [...left].filter((url) => !urls.includes(url));
    setLeft(new Set(isChosen ? others : [...left, ...urls]));
  };
  const download = (): void => {
    setFailures(new Map());
    finder.downloadAll(chosen, qualities[quality] ?? {}, (url, failure) => {
      if (failure === undefined) setCreated((before) => new Set([...before, url]));
      else setFailures((before) => new Map([...before, [url, failure]]));
    });
  };
  return h(
    "div",
    { class: "stack" },
    h(
      "p",
      { class: "row" },
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          checked: chosen.length === shown.length,
          onChange: ({ currentTarget }) =>
            choose(
              shown.map(({ url }) => url),
              currentTarget.checked,
            ),
        }),
        "All",
      ),
    ),
    h(
      "ul",
      { class: "choices" },
      shown.map((entry) =>
        h(Choice, {
          key: entry.url,
          entry,
          finder,
          failure: failures.get(entry.url),
          isChosen: !left.has(entry.url),
          onChoose: (isChosen: boolean) => choose([entry.url], isChosen),
        }),
      ),
    ),
    h(
      "p",
      { class: "row" },
      h(
        "label",
        { class: "quality" },
        "Quality ",
        h(
          "select",
          {
            value: quality,
            onChange: (event: TargetedEvent<HTMLSelectElement>) =>
              setQuality(event.currentTarget.value),
          },
          Object.keys(qualities).map((name) => h("option", { key: name }, name)),
        ),
      ),
      h(
        "button",
        {
          class: "primary",
          disabled: chosen.length === 0 || finder.adding.value,
          onClick: download,
        },
        `Download ${chosen.length}`,
      ),
    ),
  );
}

interface ChoiceProps {
  entry: Entry;
  finder: Finder;
  failure: TaskFailure | undefined;
  isChosen: boolean;
  onChoose: (isChosen: boolean) => void;
}

function Choice({ entry, finder, failure, isChosen, onChoose }: ChoiceProps): ComponentChild {
  const { url, title, duration } = entry;
  const name = title ?? url;
  return h(
    "li",
    { class: "row" },
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: isChosen,
        onChange: ({ currentTarget }) => onChoose(currentTarget.checked),
      }),
      h(
        "span",
        {},
        h("span", { dir: "auto" }, name),
        duration !== null && h("span", { class: "muted" }, ` ${formatDuration(duration)}`),
        failure && h("span", { class: "failure" }, ` ${describeFailure(failure)}`),
      ),
    ),
    h("button", { "aria-label": `Formats of ${name}`, onClick: () => finder.look(url) }, "Formats"),
  );
}
