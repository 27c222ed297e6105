import { type ComponentChild, h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Entry } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";
import { Button, Check, Picture } from "../elements.ts";
import { describeFailure } from "../texts.ts";
import { Choice, DownloadChosen } from "./choices.ts";
import type { FoundProps } from "./finding.ts";
import type { TaskOptions } from "../../model/task.ts";

/** An entry, and where its picture is. */
interface Listed {
  entry: Entry;
  picture: string | undefined;
}

/** The entries of a playlist: those that are chosen become one download. Further ones are read when asked for. */
export function Entries({ info, finder }: FoundProps): ComponentChild {
  const [listed, setListed] = useState<readonly Listed[]>(() => listOf(info, undefined));
  const [next, setNext] = useState(info.entries_next);
  const [isWhole, setWhole] = useState(false);
  const [some, setSome] = useState<ReadonlySet<number>>(new Set());
  const chosen = isWhole ? new Set(listed.keys()) : some;
  const last = useRef(0);
  const count = info.entries_count ?? (next === undefined ? listed.length : undefined);

  /** Chooses an entry; with the shift key, all from the one before on. */
  function choose(index: number, isChosen: boolean, isRange: boolean): void {
    const from = isRange ? Math.min(last.current, index) : index;
    const to = isRange ? Math.max(last.current, index) : index;
    const range = new Set(listed.keys().filter((each) => each >= from && each <= to));
    last.current = index;
    setWhole(false);
    setSome(isChosen ? chosen.union(range) : chosen.difference(range));
  }

  function chooseAll(isChosen: boolean): void {
    setWhole(isChosen);
    setSome(new Set());
  }

  function add(page: PageInfo, cursor: string): void {
    setListed([...listed, ...listOf(page, cursor)]);
    setNext(page.entries_next);
  }

  return h(
    "div",
    { class: "stack" },
    h(
      "p",
      { class: "row" },
      h(Check, { isChecked: isWhole, onCheck: chooseAll }, count === undefined ? "All" : `All ${count}`),
    ),
    h(Rows, { listed, chosen, choose, finder }),
    next !== undefined && h(More, { key: next, url: info.url, cursor: next, onPage: add, finder }),
    h(DownloadChosen, {
      count: isWhole ? (count ?? "all") : chosen.size,
      isBusy: finder.adding.value,
      download: (options) => {
        const urls = listed.map(({ entry }) => entry.url);
        const entries = isWhole ? "all" : chooseEntries(urls, chosen);
        finder.download(info.url, { ...options, entries }, info.title ?? info.url);
      },
    }),
  );
}

interface RowsProps extends Pick<FoundProps, "finder"> {
  listed: readonly Listed[];
  /** By index. */
  chosen: ReadonlySet<number>;
  choose: (index: number, isChosen: boolean, isRange: boolean) => void;
}

function Rows({ listed, chosen, choose, finder }: RowsProps): ComponentChild {
  const list = useRef<HTMLUListElement>(null);
  const shown = useRef(0);
  useLayoutEffect(() => {
    // The button that was pressed to read these is gone.
    if (document.activeElement === document.body)
      list.current?.children[shown.current]?.querySelector("input")?.focus();
    shown.current = listed.length;
  }, [listed.length]);
  const hasPictures = listed.some(({ picture }) => picture !== undefined);
  return h(
    "ul",
    { class: "choices", ref: list },
    listed.map(({ entry, picture }, index) =>
      h(Choice, {
        key: index,
        entry,
        picture: hasPictures && h(Picture, { class: "picture", src: picture }),
        isChecked: chosen.has(index),
        onCheck: choose.bind(null, index),
        finder,
      }),
    ),
  );
}

function listOf({ url, entries = [] }: PageInfo, cursor: string | undefined): Listed[] {
  const query = new URLSearchParams({ url, ...(cursor !== undefined && { entries_cursor: cursor }) });
  return entries.map((entry, index) => ({
    entry,
    picture: entry.thumbnail == null ? undefined : `info/thumbnail?${query.toString()}&entry=${index + 1}`,
  }));
}

interface MoreProps extends Pick<FoundProps, "finder"> {
  url: string;
  cursor: string;
  onPage: (page: PageInfo, cursor: string) => void;
}

/** Reads the next entries when asked to. */
function More({ url, cursor, onPage, finder }: MoreProps): ComponentChild {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const reading = useRef(new AbortController());
  useEffect(() => () => reading.current.abort(), []);
  const read = async (): Promise<void> => {
    setBusy(true);
    setFailure(undefined);
    const { signal } = reading.current;
    const page = await finder.readMore(url, cursor, signal);
    if (signal.aborted) return;
    setBusy(false);
    if ("formats" in page) onPage(page, cursor);
    else setFailure(describeFailure(page));
  };
  const onClick = (): void => void read();
  return h(
    "p",
    { class: "row" },
    h(Button, { isDisabled: isBusy, onClick }, isBusy ? "Reading…" : "Show more"),
    h("span", { class: "failure", role: "alert" }, failure),
  );
}

/** As many URLs as the service takes. */
const maxUrls = 500;

/** Returns the option that names these entries of a list, by their indexes: up to 500 by their URLs, more by their numbers. */
function chooseEntries(urls: readonly string[], chosen: ReadonlySet<number>): NonNullable<TaskOptions["entries"]> {
  const indexes = [...chosen].toSorted((a, b) => a - b);
  if (indexes.length <= maxUrls) return indexes.flatMap((index) => urls[index] ?? []);
  const ranges: [from: number, to: number][] = [];
  for (const index of indexes) {
    const range = ranges.at(-1);
    if (range?.[1] === index) range[1] = index + 1;
    else ranges.push([index + 1, index + 1]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}
