import { clock, type Cue } from "../remux/additions.ts";
import { faceTags, readCueText } from "../remux/cue-text.ts";

/** Yields a WebVTT file of the cues, in pieces; it states the colours of their classes. */
export function* writeWebVtt(cues: readonly Cue[]): Generator<string> {
  yield "WEBVTT\n";
  const colors = [...colorsOf(cues)].map((digits) => `::cue(.color${digits}) { color: #${digits}; }\n`);
  if (colors.length > 0) yield `\nSTYLE\n${colors.join("")}`;
  yield* inGroups(cues, ({ startS, endS, text, settings }) => {
    const timing = `${clock(startS, ".")} --> ${clock(endS, ".")}`;
    return `\n${settings === "" ? timing : `${timing} ${oneLine(settings)}`}\n${withoutBlankLines(text)}\n`;
  });
}

/** Yields a SubRip file of the cues, with italics, bold, underlines and colours, in pieces. */
export function* writeSubRip(cues: readonly Cue[]): Generator<string> {
  yield* inGroups(cues, ({ startS, endS, text }, index) => {
    const timing = `${clock(startS, ",")} --> ${clock(endS, ",")}`;
    return `${index === 0 ? "" : "\n"}${index + 1}\n${timing}\n${withoutBlankLines(subRipText(text))}\n`;
  });
}

const maxColors = 1_000;

/** Returns the colours that tags of the cues name. */
function colorsOf(cues: readonly Cue[]): Set<string> {
  const found = new Set<string>();
  for (const { text } of cues) {
    for (const [, digits = ""] of text.matchAll(/\.color([\da-f]{6})(?=[\s.>])/gi)) {
      if (found.size === maxColors) return found;
      found.add(digits);
    }
  }
  return found;
}

const groupSize = 1_000;

function* inGroups(cues: readonly Cue[], write: (cue: Cue, index: number) => string): Generator<string> {
  for (let at = 0; at < cues.length; at += groupSize) {
    yield cues
      .slice(at, at + groupSize)
      .map((cue, index) => write(cue, at + index))
      .join("");
  }
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
  for (const { start, end, faces: shown, color } of styles) {
    const names = faceTags(shown);
    const font = color === null ? [] : [`<font color="#${color}">`];
    const tags = [...font, ...names.map((name) => `<${name}>`)].join("");
    const ends = [...names.toReversed(), ...(color === null ? [] : ["font"])].map((name) => `</${name}>`).join("");
    written += `${characters.slice(at, start).join("")}${tags}${characters.slice(start, end).join("")}${ends}`;
    at = end;
  }
  return written + characters.slice(at).join("");
}
