import { nameInPath } from "../../model/url-parts.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { Task } from "../../model/task.ts";

/** What a library names files after. */
export type NamedTask = Pick<Task, "id" | "url" | "owner" | "collection" | "info" | "file" | "files">;

/** A template of paths: the folders, then the name without its ending. */
export interface Template {
  parts: readonly (readonly TemplateNode[])[];
}

/** Text as it is, a field, or what is between brackets, which leaves with its fields. */
export type TemplateNode =
  | { kind: "text"; text: string }
  | { kind: "field"; names: readonly FieldName[]; format: string }
  | { kind: "group"; open: string; nodes: readonly TemplateNode[]; close: string };

export const defaultTemplate = "{uploader}/{uploaded_at:date} {title} [{video_id}]";

const ofPage = (read: (info: PageInfo) => string | number | null | undefined) => (task: NamedTask) =>
  task.info === null ? null : read(task.info);

/** What a field is in a task; `null` or undefined: unknown. */
const fields = {
  title: ({ info, url }: NamedTask) => info?.title ?? nameInPath(url),
  uploader: ofPage(({ uploader }) => uploader),
  uploaded_at: ofPage(({ uploaded_at }) => uploaded_at),
  video_id: ofPage(({ video_id }) => video_id),
  extractor: ofPage(({ extractor }) => extractor),
  site_name: ofPage(({ site_name }) => site_name),
  language: ofPage(({ language }) => language),
  media_type: ofPage(({ media_type }) => media_type),
  duration: ofPage(({ duration }) => (duration === null ? null : Math.round(duration))),
  age_limit: ofPage(({ age_limit }) => age_limit),
  series: ofPage(({ series }) => series),
  season_number: ofPage(({ season_number }) => season_number),
  episode_number: ofPage(({ episode_number }) => episode_number),
  height: ({ file }: NamedTask) => file?.height,
  id: ({ id }: NamedTask) => id,
  owner: ({ owner }: NamedTask) => owner,
  playlist: ({ collection }: NamedTask) => collection?.title,
  playlist_index: ({ collection }: NamedTask) => collection?.index,
} satisfies Record<string, (task: NamedTask) => string | number | null | undefined>;

type FieldName = keyof typeof fields;

const dateFields: ReadonlySet<string> = new Set(["uploaded_at"]);
const numberFields: ReadonlySet<string> = new Set([
  "season_number",
  "episode_number",
  "playlist_index",
  "duration",
  "age_limit",
  "height",
]);

/** A path has at most this many components. */
const maxParts = 10;

/** Of each component, UTF-16 code units. */
const maxPartLength = 200;

/**
 * Parses `{uploader}/{uploaded_at:date} {title} [{video_id}]`: fields in braces, with fallbacks (`{series|uploader}`), a date
 * (`:date`) or a number of digits (`:03`); text between `[…]` or `(…)` leaves with its fields.
 *
 * @throws Error whose message is the rule that the template breaks, after "must".
 */
export function parseTemplate(template: string): Template {
  if (/%\([^)]*\)/.test(template)) throw new Error("have its fields in braces: {title} instead of yt-dlp's %(title)s");
  const parts = template.split("/");
  if (parts.length > maxParts) throw new Error(`have at most ${maxParts} components`);
  return { parts: parts.map(parsePart) };
}

function parsePart(part: string): TemplateNode[] {
  if (part.trim() === "" || /^\.+$/.test(part)) throw new Error("have a name before and after each /, not . or ..");
  if (part.length > maxPartLength) throw new Error(`have at most ${maxPartLength} characters in each component`);
  const tokens = part.match(/\{[^{}]*\}|[[\]()]|[^{}[\]()]+|[{}]/g) ?? [];
  const nodes: TemplateNode[] = [];
  while (tokens.length > 0) nodes.push(...parseNodes(tokens, undefined));
  return nodes;
}

const closing: Readonly<Record<string, string>> = { "[": "]", "(": ")" };

/** Takes tokens up to `close`, or to the end. */
function parseNodes(tokens: string[], close: string | undefined): TemplateNode[] {
  const nodes: TemplateNode[] = [];
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if (token === close) return nodes;
    const end = closing[token];
    if (end !== undefined && tokens.includes(end)) {
      nodes.push({ kind: "group", open: token, nodes: parseNodes(tokens, end), close: end });
    } else nodes.push(token.length > 1 && token.startsWith("{") ? parseField(token.slice(1, -1)) : parseText(token));
  }
  return nodes;
}

function parseText(text: string): TemplateNode {
  if (/[{}]/.test(text)) throw new Error("close each { with a }");
  const refused = /[<>:"\\|?*\p{C}]/u.exec(text);
  if (refused !== null) throw new Error(`not have the character ${JSON.stringify(refused[0])} outside of fields`);
  return { kind: "text", text };
}

function parseField(text: string): TemplateNode {
  const [, list = "", format = ""] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  const names = list.split("|").map(requireField);
  const isDate = format === "date" && names.every((name) => dateFields.has(name));
  const isNumber = /^0[1-9]$/.test(format) && names.every((name) => numberFields.has(name));
  if (format === "" || isDate || isNumber) return { kind: "field", names, format };
  throw new Error(
    `have no format but date (uploaded_at) and 01 to 09 (numbers), as in {playlist_index:03}; it has {${text}}`,
  );
}

function requireField(name: string): FieldName {
  if (Object.hasOwn(fields, name)) return name as FieldName;
  throw new Error(`have no fields but ${Object.keys(fields).join(", ")}; it has {${name}}`);
}

/** Returns the value of the first field that is known, as text; undefined if none is. */
export function readField(task: NamedTask, names: readonly FieldName[], format: string): string | undefined {
  for (const name of names) {
    const value = fields[name](task);
    if (value === null || value === undefined || value === "") continue;
    const text = String(value);
    if (format === "date") return text.slice(0, 10);
    return format === "" ? text : text.padStart(Number(format), "0");
  }
  return undefined;
}
