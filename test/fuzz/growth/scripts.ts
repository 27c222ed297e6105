import { blocks, fill, type Grow, half, list, script } from "./grow.ts";

/** Longer arguments and lists are not read as such. */
const block = 250_000;
const call = (body: string, args: string) => script(`x=(function(a,b){${body}}(${args}))`);
const flat = (text: string) => script(`[{"a":1},${text}]`);
/** What scripts have. */
export const scripts: Record<string, Grow> = {
  "brackets around each URL": (n) => script(`x=[${fill(`${"[".repeat(190)}"/1.mp4"${"]".repeat(190)},`, n)}]`),
  "brackets around different URLs": (n) =>
    script(`x=[${list((i) => `${"[".repeat(190)}"/${i}.mp4"${"]".repeat(190)},`, n)}]`),
  "brackets in many scripts": (n) =>
    list((i) => script(`x=[${"[".repeat(190)}"/${i % 100}.mp4"${"]".repeat(190)}]`), n),
  "open brackets": (n) => script(`x="/1.mp4"${fill("[{(", n)}`),
  "closing brackets": (n) => script(`x="/1.mp4"${"{".repeat(199)}${fill("])", n)}"/2.mp4"`),
  "objects in lists": (n) => script(`x=[${fill(`[${fill('{src:"/1.mp4"},', 14_000)}],`, n)}]`),
  "objects in lists of many scripts": (n) => fill(script(`x=[${fill('{src:"/1.mp4"},', 14_000)}]`), n),
  "texts beside a URL": (n) => script(`x=[${fill(`["/1.mp4",${fill('"a",', 4_000)}],`, n)}]`),
  quotes: (n) => script(`x="/1.mp4"${fill("'", n)}`),
  "texts of escapes": (n) => script(`x="/1.mp4";y="${fill("\\u0041", n)}"`),
  "a text without an end": (n) => script(`x="/1.mp4";y="${fill('\\"', n)}`),
  templates: (n) => script(`x="/1.mp4";y=\`${fill("${a}", n)}\``),
  slashes: (n) => script(`x="/1.mp4"${fill("(/[", n)}"/2.mp4"`),
  comments: (n) => script(`x="/1.mp4"${fill("/**/", n)}"/2.mp4"`),
  "starts of comments": (n) => script(`x="/1.mp4";${fill("/*", n)}`),
  words: (n) => script(`x="/1.mp4";${fill("a ", n)}"/2.mp4"`),
  numbers: (n) => script(`x={src:"/1.mp4",${list((i) => `a${i}:${i},`, n)}}`),
  colons: (n) => script(`x="/1.mp4"${fill(":", n)}"/2.mp4"`),
  "plus signs": (n) => script(`x=${fill(`"/1.mp4"+`, n)}""`),
  comparisons: (n) => script(fill(`x=="/1.mp4";`, n)),
  "names without a URL": (n) => script(fill(`x="hls";`, n)),
  "names with white space": (n) => script(fill(`+         "${fill("a", 100)}.mp4" `, n)),
  calls: (n) => script(fill(`f("file","/1.mp4");`, n)),
  "calls in calls": (n) => script(fill(`f("/1.mp4",`, n)),
  loadSource: (n) => script(list((i) => `h.loadSource("/${i}");`, n)),
  "arguments that are named": (n) =>
    blocks(n, block, (l) =>
      call(`return {src:"/1.mp4",l:[${fill("a,", half(l))}]}`, `"${fill("x", Math.min(64_000, half(l)))}"`),
    ),
  "arguments with a URL": (n) =>
    blocks(n, block, (l) =>
      call(`return {l:[${fill("{src:a},", half(l))}]}`, `"/1.mp4?${fill("x", Math.min(8_000, half(l)))}"`),
    ),
  parameters: (n) =>
    blocks(n, 60_000, (l) =>
      script(
        `x=(function(${list((i) => `a${i},`, half(l)).slice(0, -1)}){return {src:a1}}("/1.mp4",${fill("1,", half(l))}1))`,
      ),
    ),
  "arguments of escapes": (n) => blocks(n, block, (l) => call(`return {src:"/1.mp4"}`, `"${fill('\\"', l)}\\`)),
  "bodies of escapes": (n) => blocks(n, block, (l) => call(`"/1.mp4";"${fill('\\"', l)}\\`, `"x"`)),
  "references of Angular": (n) => script(`{&q;f&q;:&q;/1.mp4&q;${fill(",&q;a&q;:1", n)}}`),
  "one reference of Angular": (n) => script(`{&q;/1.mp4"${fill("a", n)}`),
  "percent-encoded data": (n) => script(`%7B"f":"/1.mp4","x":"${fill("%41", n)}"}`),
  "percent-encoded data without an escape": (n) => script(`%7B"f":"/1.mp4","x":"${fill("a", n)}"}`),
  "a value in base64": (n) => script(`x="/1.mp4";y="${btoa(`{"a":"/1.mp4","b":"${fill("x", half(n))}"}`)}"`),
  "URLs in base64": (n) => script(fill(`y="${btoa("https://a.example/1.mp4?aaaaaaaaaa")}";`, n)),
  "a script in base64": (n) => script(btoa(`{"a":"/1.mp4","b":"${fill("x", half(n))}"}`)),
  "data in texts": (n) => script(list((i) => `x='{"a":"/${i}.mp4"}';`, n)),
  "data in a text": (n) => script(`x="{${fill('\\"file\\":\\"/1.mp4\\",', n)}"`),
  "data in texts in texts": (n) => script(nested(n, (text) => `a=${JSON.stringify(text)}`, 8)),
  "data in percent-encoding in percent-encoding": (n) =>
    script(nested(n, (text) => `x="${encodeURIComponent(`{"a":"${text}"}`)}"`, 40)),
  "data in base64 in base64": (n) => script(nested(n, (text) => `{"a":"${btoa(text)}"}`, 8)),
  "pushes to a stream": (n) => fill(script(`self.__next_f.push([1,"/1.mp4"])`), n),
  "a push to a stream": (n) => script(`self.__next_f.push([1,"${fill(`{\\"a\\":\\"/1.mp4\\"}`, n)}"])`),
  "tags in texts": (n) => script(`x="/1.mp4";${fill('y="<video <source <audio ";', n)}`),
  "quoted names in texts": (n) => script(`x="/1.mp4";${fill(`y="${fill('\\"a\\" ', 8_000)}";`, n)}`),
  "a flat list": (n) => blocks(n, block, (l) => flat(`{"src":2},"/1.mp4",${fill('{"a":1},', l)}0`)),
  "a text that a flat list refers to": (n) =>
    blocks(n, block, (l) => flat(`[${fill("2,", half(l))}2],"/1.mp4?${fill("a", half(l))}"`)),
  "objects of a flat list that refer to a text": (n) =>
    blocks(n, block, (l) =>
      flat(
        `[${list((i) => `${i + 4},`, l / 8)}3],"${fill("a/", l / 4)}","/1.mp4",${fill(`{${list((i) => `"a${i}":2,`, 4_000)}"src":3},`, half(l))}0`,
      ),
    ),
  "objects of a flat list that refer to base64": (n) =>
    blocks(n, block, (l) =>
      flat(
        `[${list((i) => `${i + 4},`, l / 8)}3],"${btoa(`https://a/1.mp4?${fill("a", l / 4)}`)}","/1.mp4",${fill(`{${list((i) => `"a${i}":2,`, 4_000)}"src":3},`, half(l))}0`,
      ),
    ),
  "objects of a flat list that refer to URLs": (n) =>
    blocks(n, block, (l) =>
      flat(
        `[${list((i) => `${i + 4},`, l / 8)}3],"${fill("https://a/1.mp4,", Math.min(8_000, l / 4))}","/1.mp4",${fill(`{${list((i) => `"src${i}":2,`, 4_000)}"src":3},`, half(l))}0`,
      ),
    ),
  "names of a flat list": (n) =>
    blocks(n, block, (l) =>
      flat(`{"${fill("0", half(l))}!hls":2},{${list((i) => `"url${i}":3,`, half(l))}"src":3},"/1.mp4"`),
    ),
  "typed values of a flat list": (n) =>
    blocks(n, block, (l) => flat(list((i) => `["Reactive",${i + 2}],`, l) + '"/1.mp4"')),
};

function nested(length: number, wrap: (text: string) => string, most: number): string {
  let text = `{"src":"/1.mp4","x":"${fill("x", half(length))}"}`;
  for (let level = 0; level < most && text.length < length; level++) text = wrap(text);
  return text;
}
