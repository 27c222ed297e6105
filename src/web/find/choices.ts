import { type ComponentChild, h, type TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type { Entry } from "../../model/entry.ts";
import type { TaskFailure } from "../../model/progress.ts";
import type { TaskOptions } from "../../model/task.ts";
import { Button, Check, type CheckProps } from "../elements.ts";
import { describeFailure, formatDuration } from "../texts.ts";
import { formatDay } from "./day.ts";
import type { ChoicesProps, Finder } from "./finding.ts";

const qualities: Record<string, TaskOptions> = {
  "The best": {},
  "At most 1080p": { max_height: 1080 },
  "At most 720p": { max_height: 720 },
  "At most 480p": { max_height: 480 },
  "At most 360p": { max_height: 360 },
  "Only the audio": { audio_only: true },
};

/** Several pages, of which those that are left chosen are downloaded. What was created leaves the list. */
export function Choices({ entries, finder }: ChoicesProps): ComponentChild {
  const [created, setCreated] = useState<ReadonlySet<string>>(new Set());
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [failures, setFailures] = useState<ReadonlyMap<string, TaskFailure>>(new Map());
  const shown = entries.filter(({ url }) => !created.has(url));
  const urls = shown.map(({ url }) => url);
  const chosen = urls.filter((url) => !left.has(url));
  const choose = (some: readonly string[], isChosen: boolean): void =>
    setLeft(isChosen ? left.difference(new Set(some)) : left.union(new Set(some)));
  const download = (options: TaskOptions): void => {
    setFailures(new Map());
    finder.downloadAll(chosen, options, (url, failure) => {
      if (failure === undefined) setCreated((before) => new Set([...before, url]));
      else setFailures((before) => new Map([...before, [url, failure]]));
    });
  };
  const isWhole = chosen.length === shown.length;
  const failed = failures.size === 0 ? "" : `Not added: ${failures.size} of ${failures.size + created.size} pages.`;
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "row" }, h(Check, { isChecked: isWhole, onCheck: (isChosen) => choose(urls, isChosen) }, "All")),
    h(
      "ul",
      { class: "choices" },
      shown.map((entry) =>
        h(Choice, {
          key: entry.url,
          entry,
          finder,
          failure: failures.get(entry.url),
          isChecked: !left.has(entry.url),
          onCheck: (isChosen) => choose([entry.url], isChosen),
        }),
      ),
    ),
    h("p", { class: "failure", role: "alert" }, failed),
    h(DownloadChosen, { count: chosen.length, isBusy: finder.adding.value, download }),
  );
}

interface ChoiceProps extends CheckProps {
  entry: Entry;
  finder: Finder;
  picture?: ComponentChild;
  failure?: TaskFailure | undefined;
}

/** A page that can be chosen. */
export function Choice({ entry, finder, picture, failure, ...check }: ChoiceProps): ComponentChild {
  const { url, title, duration, uploaded_at: uploadedAt } = entry;
  const name = title ?? url;
  const details = [
    ...(duration == null ? [] : [formatDuration(duration)]),
    ...(uploadedAt == null ? [] : [formatDay(uploadedAt)]),
  ];
  return h(
    "li",
    { class: "row" },
    h(
      Check,
      check,
      picture,
      h(
        "span",
        {},
        h("span", { dir: "auto" }, name),
        details.length > 0 && h("span", { class: "muted" }, ` ${details.join(" · ")}`),
        failure && h("span", { class: "failure" }, ` ${describeFailure(failure)}`),
      ),
    ),
    h("button", { "aria-label": `Formats of ${name}`, onClick: () => finder.look(url) }, "Formats"),
  );
}

interface DownloadChosenProps {
  count: number | "all";
  isBusy: boolean;
  download: (options: TaskOptions) => void;
}

/** Downloads what is chosen, in a quality, perhaps with subtitles. */
export function DownloadChosen({ count, isBusy, download }: DownloadChosenProps): ComponentChild {
  const [quality, setQuality] = useState("The best");
  const [hasSubtitles, setSubtitles] = useState(false);
  const onChange = ({ currentTarget }: TargetedEvent<HTMLSelectElement>): void => setQuality(currentTarget.value);
  const isDisabled = count === 0 || isBusy;
  const onClick = () => download({ ...qualities[quality], ...(hasSubtitles && { subtitles: true }) });
  return h(
    "p",
    { class: "row" },
    h(
      "label",
      { class: "quality" },
      "Quality ",
      h(
        "select",
        { value: quality, onChange },
        Object.keys(qualities).map((name) => h("option", { key: name }, name)),
      ),
    ),
    h(Check, { isChecked: hasSubtitles, onCheck: setSubtitles }, "With subtitles"),
    h(Button, { class: "primary", isDisabled, onClick }, count === 0 ? "Download" : `Download ${count}`),
  );
}
