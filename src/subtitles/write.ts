import type { Cue } from "../remux/additions.ts";
import { faces, readCueText } from "../remux/cue-text.ts";

/** Returns the cues as a WebVTT file. */
export function writeWebVtt(cues: readonly Cue[]): string {
  const body = joinBlocks(cues, ({ startS, endS, text, settings }) => {
    const timing = `${clock(startS, ".")} --> ${clock(endS, ".")}`;
    return `${settings === "" ? timing : `${timing} ${oneLine(settings)}`}\n${withoutBlankLines(text)}\n`;
  });
  return body === "" ? "WEBVTT\n" : `WEBVTT\n\n${body}`;
}

/** Returns the cues as a SubRip file, with italics, bold and underlines. */
export function writeSubRip(cues: readonly Cue[]): string {
  return joinBlocks(cues, ({ startS, endS, text }, index) => {
    return `${index + 1}\n${clock(startS, ",")} --> ${clock(endS, ",")}\n${withoutBlankLines(subRipText(text))}\n`;
  });
}

const groupSize = 1_000;

/** Joins group by group: hundreds of thousands of small strings would take much memory. */
function joinBlocks(cues: readonly Cue[], write: (cue: Cue, index: number) => string): string {
  const groups: string[] = [];
  for (let at = 0; at < cues.length; at += groupSize) {
    const blocks = cues.slice(at, at + groupSize).map((cue, index) => write(cue, at + index));
    groups.push(blocks.join("\n"));
  }
  return groups.join("\n");
}

/** A blank line would end the cue, and an arrow begin another one. */
function withoutBlankLines(text: string): string {
  const lines = text.replaceAll("-->", "->").split("\n");
  return lines.filter((line) => line.trim() !== "").join("\n");
}

const oneLine = (settings: string): string => settings.replaceAll(/[\r\n]+/g, " ").replaceAll("-->", "");

function subRipText(payload: string): string {
  const { text, styles } = readCueText(payload);
  if (styles.length === 0) return text;
  const characters = Array.from(text);
  let at = 0;
  let written = "";
  for (const { start, end, faces: shown } of styles) {
    const names = Object.entries(faces).flatMap(([name, face]) => (shown & face ? [name] : []));
    const tags = names.map((name) => `<${name}>`).join("");
    const ends = names
      .toReversed()
      .map((name) => `</${name}>`)
      .join("");
    written += `${characters.slice(at, start).join("")}${tags}${characters.slice(start, end).join("")}${ends}`;
    at = end;
  }
  return written + characters.slice(at).join("");
}

function clock(seconds: number, point: "." | ","): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const digits = (value: number, length: number) => String(value).padStart(length, "0");
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, ms % 60_000];
  return `${digits(hours, 2)}:${digits(minutes, 2)}:${digits(Math.floor(rest / 1000), 2)}${point}${digits(rest % 1000, 3)}`;
}
