import { Parser } from "htmlparser2";

/** Elements that begin a line of their own. */
const lines: ReadonlySet<string> = new Set(["br", "div", "h1", "h2", "h3", "li", "p", "tr"]);
const unshown: ReadonlySet<string> = new Set(["script", "style", "template", "title"]);

/** Returns the text that a fragment of HTML shows: without tags, with character references replaced. */
export function htmlText(html: string): string {
  let text = "";
  let hidden = 0;
  const parser = new Parser({
    onopentagname(name) {
      if (unshown.has(name)) hidden += 1;
      else if (lines.has(name)) text += "\n";
    },
    ontext(part) {
      if (hidden === 0) text += part;
    },
    onclosetag(name) {
      if (unshown.has(name)) hidden -= 1;
    },
  });
  parser.end(html);
  return text.trim();
}
