import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface SavedPage {
  url: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** Of the saved bytes, whatever their own `<meta>` says. */
  contentType: string;
  /** The bytes decoded, for tools that take text. */
  html: string;
}

/** Reads the pages that `pages.json` in `directory` lists. */
export function readPages(directory: string): SavedPage[] {
  const list: Listed[] = JSON.parse(readFileSync(join(directory, "pages.json"), "utf8"));
  return list.map(({ file, url, encoding }) => {
    const bytes = readFileSync(join(directory, file));
    const charset = encoding.replace(/-bom$/, "").replace(/^cp/, "windows-");
    const html = new TextDecoder(charset).decode(bytes);
    return { url, bytes, contentType: `text/html; charset=${charset}`, html };
  });
}

interface Listed {
  file: string;
  url: string;
  encoding: string;
}
