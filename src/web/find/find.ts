import { useSignal } from "@preact/signals";
import { type ComponentChild, h, type TargetedClipboardEvent } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Task } from "../../model/task.ts";
import { addressesIn, createFinder } from "./finder.ts";
import type { Finder, Finding } from "./finding.ts";
import { describeFailure } from "../texts.ts";

/** The address of a page, a dialog with what is there, and a line that says what was added; `onTask` gets each new task. */
export function Find({ onTask }: { onTask: (task: Task) => void }): ComponentChild {
  const finder = useMemo(() => createFinder(onTask), []);
  const status = useRef<HTMLParagraphElement>(null);
  const added = finder.added.value;
  // The dialog that had the focus is gone.
  useEffect(() => {
    if (added !== undefined) status.current?.focus();
  }, [added]);
  return h(
    "section",
    { class: "stack", "aria-labelledby": "find" },
    h("h2", { id: "find", tabIndex: -1 }, "Find a video"),
    h(AddressForm, { finder }),
    h("p", { ref: status, role: "status", tabIndex: -1, class: "added", dir: "auto" }, added?.text),
    h(FindingDialog, { finder }),
  );
}

/** Enter shows the formats, Ctrl+Enter downloads the best; the formats of what is pasted are shown at once. */
function AddressForm({ finder }: { finder: Finder }): ComponentChild {
  const address = useSignal(sharedText());
  const added = finder.added.value;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => finder.open(address.value), []);
  useEffect(() => {
    if (added !== undefined) address.value = "";
  }, [added]);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (address.value.trim() === "") field.current?.focus();
    else finder.open(address.value);
  };
  const downloadBest = (): void => {
    const [url, ...others] = addressesIn(address.value);
    if (url !== undefined && others.length === 0) finder.download(url, {}, url);
    else finder.open(address.value);
  };
  const paste = (event: TargetedClipboardEvent<HTMLInputElement>): void => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (!isWhole(text, event.currentTarget)) return;
    event.preventDefault();
    address.value = text.trim();
    finder.open(text);
  };
  return h(
    "form",
    { class: "address", onSubmit: submit },
    h("label", { for: "address" }, "Address of a page with a video"),
    h("input", {
      id: "address",
      ref: field,
      type: "text",
      inputMode: "url",
      enterKeyHint: "go",
      autoComplete: "off",
      autoCapitalize: "none",
      spellcheck: false,
      "aria-describedby": "address-keys",
      value: address,
      onInput: ({ currentTarget }) => void (address.value = currentTarget.value),
      onPaste: paste,
      onKeyDown: (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        downloadBest();
      },
    }),
    h("button", { class: "primary" }, "Show formats"),
    h(
      "p",
      { id: "address-keys", class: "muted" },
      "Press Enter to show the formats, Ctrl+Enter to download the best one.",
    ),
  );
}

/** Whether a text that is pasted into the field is all that is wanted: an address instead of what is there, or several. */
function isWhole(text: string, field: HTMLInputElement): boolean {
  if (addressesIn(text).length > 1) return true;
  const { value, selectionStart, selectionEnd } = field;
  return selectionStart === 0 && selectionEnd === value.length && /^\s*https?:\/\//i.test(text);
}

/** Returns what was shared to the page. Apps of phones put an address into the text, or into the title. */
function sharedText(): string {
  const query = new URLSearchParams(location.search);
  const texts = ["url", "text", "title"].map((name) => query.get(name) ?? "");
  return texts.find((text) => /https?:\/\//i.test(text)) ?? texts[0] ?? "";
}

/** Opens while there is something to show. It lies above the page, which stays as it is. */
function FindingDialog({ finder }: { finder: Finder }): ComponentChild {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const finding = finder.finding.value;
  const isOpen = finding !== undefined;
  useEffect(() => {
    if (!isOpen) return dialog.current?.close();
    // A dialog returns the focus to where it was: on a page that opens with one, nowhere.
    if (document.activeElement === document.body) document.querySelector<HTMLElement>("#find")?.focus();
    dialog.current?.showModal();
    // Not a button, which the same key press could operate.
    heading.current?.focus();
    return undefined;
  }, [isOpen]);
  // The button that was pressed is gone.
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus();
  }, [finding?.state]);
  return h(
    "dialog",
    {
      ref: dialog,
      class: "card finding",
      "aria-labelledby": "finding",
      // Not when it has closed: that is said a frame later, and the next thing may be shown by then.
      onCancel: () => finder.close(),
    },
    finding && [
      h(
        "header",
        { key: "header" },
        h("h2", { id: "finding", ref: heading, tabIndex: -1, dir: "auto" }, titleOf(finding)),
        h("button", { onClick: () => finder.close() }, finding.state === "looking" ? "Stop" : "Close"),
      ),
      h(
        "p",
        { key: "status", role: "status", class: finding.state === "failed" ? "failure" : "spoken" },
        announce(finding),
      ),
      h("div", { key: finding.state, class: "stack" }, bodyOf(finding, finder)),
    ],
  );
}

function titleOf(finding: Finding): string {
  if (finding.state === "looking") return "Reading the page…";
  if (finding.state === "failed") return "That did not work";
  if (finding.state === "batch") return `${finding.entries.length} pages`;
  return finding.info.title ?? finding.info.url;
}

function announce(finding: Finding): string {
  if (finding.state === "failed") return describeFailure(finding.failure);
  if (finding.state !== "found") return titleOf(finding);
  const { formats, entries = [] } = finding.info;
  const isEmpty = formats.length + entries.length === 0;
  return `${isEmpty ? "Nothing found" : "Found"}: ${titleOf(finding)}`;
}

function bodyOf(finding: Finding, finder: Finder): ComponentChild {
  if (finding.state === "looking") return h("progress", { "aria-label": "Reading the page" });
  if (finding.state === "found") return h(finding.Found, { info: finding.info, finder });
  if (finding.state === "batch") return h(finding.Choices, { entries: finding.entries, finder });
  const { failure, retry } = finding;
  return [
    h("details", { key: "details" }, h("summary", {}, "Details"), h("p", {}, `${failure.code}: ${failure.message}`)),
    failure.retryable && h("p", { key: "retry" }, h("button", { class: "primary", onClick: retry }, "Try again")),
  ];
}
