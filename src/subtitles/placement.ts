/** A part of the picture that has text, in percent of the picture. */
export interface TextArea {
  left: number;
  top: number;
  width: number;
  height: number;
  /** The end of the area at which the lines are. */
  lines: "top" | "middle" | "bottom";
  align: "left" | "center" | "right";
}

/** Text that ends below this is where players put it anyway, percent. */
const usualBottom = 85;
/** Areas whose middles are so near to that of the picture are in the centre, percent. */
const nearCenter = 5;
/** About a line, which is a twentieth of the picture and space around it (W3C WebVTT §7.4), percent. */
const lineHeight = 6;

/**
 * Returns the WebVTT cue settings (W3C WebVTT §3.5) that put text of `lineCount` lines into an area: none for what is at the bottom and
 * in the centre. Its first line is stated as a number: Chromium ignores alignments of lines, and puts texts over each other whose lines
 * are stated in percent.
 */
export function settingsIn(area: TextArea, lineCount: number): string[] {
  return [...lineSettings(area, lineCount), ...widthSettings(area)];
}

function lineSettings({ top, height, lines }: TextArea, lineCount: number): string[] {
  const textHeight = lineCount * lineHeight;
  const share = { top: 0, middle: 0.5, bottom: 1 }[lines];
  const startsAt = Math.max(0, top + share * (height - textHeight));
  const isUsual = startsAt + textHeight >= usualBottom;
  return isUsual ? [] : [`line:${Math.round(startsAt / lineHeight)}`];
}

function widthSettings(area: TextArea): string[] {
  const { left, width, align } = area;
  if (align === "center" && isCentered(area)) return [];
  const position = { left, center: left + width / 2, right: left + width }[align];
  const settings = [`position:${Math.round(position)}%`, `size:${Math.round(width)}%`];
  return align === "center" ? settings : [...settings, `align:${align}`];
}

/** Whether the middle of an area is about that of the picture. */
export function isCentered({ left, width }: Pick<TextArea, "left" | "width">): boolean {
  return Math.abs(left + width / 2 - 50) <= nearCenter;
}

/** Space beside text at an end of the picture, percent. */
const margin = 5;

/**
 * Returns the settings of a place from 1 to 9, as the keys of a keypad are: 1 is at the bottom on the left, 9 at the top on the right.
 * Of text that has this place at a point of the picture, in percent, it is which of its own corners or sides is there.
 */
export function keypadSettings(place: number, payload: string, point?: readonly [number, number]): string {
  if (!(place >= 1 && place <= 9)) return "";
  const [column, row] = [(place - 1) % 3, 3 - Math.ceil(place / 3)];
  const align = (["left", "center", "right"] as const)[column]!;
  const lines = (["top", "middle", "bottom"] as const)[row]!;
  const [left, width] = point === undefined ? whole : withRoom(reach(point[0], column));
  const [top, height] = point === undefined ? whole : reach(point[1], row);
  if (!(width > 0 && height > 0)) return "";
  return settingsIn({ left, top, width, height, lines, align }, payload.split("\n").length).join(" ");
}

const whole = [margin, 100 - 2 * margin] as const;

/** Players break lines between words in less, percent. */
const leastWidth = 20;

/** Returns a part of a line that has room for words, nearest to this one. */
function withRoom([start, length]: readonly [number, number]): readonly [number, number] {
  if (!(length > 0 && length < leastWidth)) return [start, length];
  const centered = start - (leastWidth - length) / 2;
  return [Math.min(Math.max(centered, 0), 100 - leastWidth), leastWidth];
}

/** Returns where what begins at a point (0), has its middle there (1), or ends there (2) starts, and how long it can be; NaN: nowhere. */
function reach(at: number, side: number): readonly [number, number] {
  if (!(at >= 0 && at <= 100)) return [NaN, NaN];
  if (side === 0) return [at, 100 - at];
  const half = Math.min(at, 100 - at);
  return side === 1 ? [at - half, 2 * half] : [0, at];
}
