import type { Cue } from "../../remux/additions.ts";
import { faceTags } from "../../remux/cue-text.ts";
import { type Box, readBox, viewOf } from "../../remux/mp4/boxes.ts";
import { addStyle, changeTags, colorTag } from "../colors.ts";
import { keypadSettings, settingsIn } from "../placement.ts";
import { decodeSubtitles, escapeText } from "../text.ts";

/** Where the boxes of text of a track are in the picture; all in pixels. */
export interface TextFrame {
  left: number;
  top: number;
  /** Of the picture; 0: unknown. */
  width: number;
  height: number;
}

/** What a sample entry of timed text says of its samples (3GPP TS 26.245 §5.16). */
interface TimedTextFormat {
  /** From 0 to 2: left, centre, right; top, middle, bottom. */
  column: number;
  row: number;
  box: TextBox;
  tags: readonly string[];
  frame: TextFrame;
}

type TextBox = Record<"top" | "left" | "bottom" | "right", number>;

const justifications: Readonly<Record<number, number>> = { 0: 0, 1: 1, [-1]: 2 };
const noBox: TextBox = { top: 0, left: 0, bottom: 0, right: 0 };
const [bodyOfFlags, entryBytes] = [8, 38];

/** Reads a sample entry: of QuickTime's `text` nothing is kept, as that of chapters and captions looks otherwise. */
export function readTimedTextFormat(bytes: Uint8Array, entry: Box, frame: TextFrame): TimedTextFormat {
  const view = viewOf(bytes);
  const at = entry.body + bodyOfFlags;
  const isShort = entry.end - entry.body < entryBytes;
  if (entry.type !== "tx3g" || isShort) return { column: 1, row: 2, box: noBox, tags: [], frame };
  return {
    column: justifications[view.getInt8(at + 4)] ?? 1,
    row: justifications[view.getInt8(at + 5)] ?? 2,
    box: readTextBox(view, at + 10),
    tags: readTags(view, at + 18),
    frame,
  };
}

function readTextBox(view: DataView, at: number): TextBox {
  const side = (offset: number) => view.getInt16(at + offset);
  return { top: side(0), left: side(2), bottom: side(4), right: side(6) };
}

const styleBytes = 12;

/** Reads the faces and the colour of a style record (§5.17.1.1). */
function readTags(view: DataView, at: number): string[] {
  const bits = view.getUint8(at + 6);
  const digits = Buffer.from([8, 9, 10].map((offset) => view.getUint8(at + offset))).toString("hex");
  const tags = new Set(faceTags(bits));
  addStyle(tags, colorTag(digits));
  return [...tags];
}

/** Returns the text of a sample, with its faces, colours and place; `null`: it has none. */
export function readTimedText(bytes: Uint8Array, format: TimedTextFormat): Pick<Cue, "text" | "settings"> | null {
  if (bytes.length < 2) return null;
  const view = viewOf(bytes);
  const end = Math.min(2 + view.getUint16(0), bytes.length);
  const characters = Array.from(decodeSubtitles(bytes.subarray(2, end)));
  const styles: { from: number; to: number; tags: readonly string[] }[] = [];
  let { box } = format;
  for (const part of modifiersIn(bytes, end)) {
    if (part.type === "tbox" && part.end - part.body >= 8) box = readTextBox(view, part.body);
    if (part.type !== "styl") continue;
    for (let at = part.body + 2; at + styleBytes <= part.end; at += styleBytes) {
      styles.push({ from: view.getUint16(at), to: view.getUint16(at + 2), tags: readTags(view, at) });
    }
  }
  const text = toPayload(characters, styles, format.tags);
  return text === "" ? null : { text, settings: settingsOf(format, box, text) };
}

/** Yields the boxes after a text, up to one that is damaged. */
function* modifiersIn(bytes: Uint8Array, start: number): Generator<Box> {
  for (let at = start; at + 8 <= bytes.length;) {
    const size = viewOf(bytes).getUint32(at);
    if (size < 8 || size > bytes.length - at) return;
    yield readBox(bytes, at, size);
    at += size;
  }
}

function toPayload(
  characters: readonly string[],
  styles: readonly { from: number; to: number; tags: readonly string[] }[],
  usual: readonly string[],
): string {
  let payload = "";
  let open: readonly string[] = [];
  let at = 0;
  const write = (to: number, tags: readonly string[]) => {
    const part = characters.slice(at, to).join("").replaceAll(/\r\n?/g, "\n");
    at = Math.max(at, to);
    if (part === "") return;
    payload += changeTags(open, tags) + escapeText(part);
    open = tags;
  };
  for (const { from, to, tags } of styles.toSorted((a, b) => a.from - b.from)) {
    write(from, usual);
    write(to, tags);
  }
  write(characters.length, usual);
  return (payload + changeTags(open, [])).trim();
}

function settingsOf({ column, row, frame }: TimedTextFormat, box: TextBox, text: string): string {
  const percent = (pixels: number, whole: number) => Math.min(100, Math.max(0, (100 * pixels) / whole));
  const [left, right] = [box.left, box.right].map((x) => percent(frame.left + x, frame.width)) as [number, number];
  const [top, bottom] = [box.top, box.bottom].map((y) => percent(frame.top + y, frame.height)) as [number, number];
  if (!(right > left && bottom > top)) return keypadSettings(7 - 3 * row + column, text);
  const lines = (["top", "middle", "bottom"] as const)[row]!;
  const align = (["left", "center", "right"] as const)[column]!;
  const area = { left, top, width: right - left, height: bottom - top, lines, align };
  return settingsIn(area, text.split("\n").length).join(" ");
}
