import type { ReadKind } from "../../../src/resolvers/page/reader/reader.ts";

/** A page, the HTML of one, or the text of another kind of response. */
export type Page = string | { html: string; url: string; kind?: ReadKind };

/** Returns a page of about this length, UTF-16 code units. */
export type Grow = (length: number) => Page;

export function fill(text: string, length: number): string {
  return text.repeat(Math.max(1, Math.floor(length / text.length)));
}

/** Returns as many different parts as fit. */
export function list(part: (n: number) => string, length: number): string {
  const parts: string[] = [];
  for (let n = 0, left = length; left > 0; n++) {
    const text = part(n);
    left -= text.length;
    parts.push(text);
  }
  return parts.join("");
}

/** Repeats a construct whose own length is limited. */
export function blocks(length: number, most: number, block: (length: number) => string): string {
  return fill(block(Math.min(length, most)), length);
}

export function half(length: number): number {
  return Math.floor(length / 2);
}

export function script(source: string): string {
  return `<script>${source}</script>`;
}
