import { Value } from "@sinclair/typebox/value";
import { shorten, unlikeDevice, withoutExtension } from "../../files/file-name.ts";
import type { ResultFile } from "../../model/task.ts";
import { languageInName } from "../list-files.ts";
import { type NamedTask, readField, type Template, type TemplateNode } from "./template.ts";
import { newTask } from "../../feed/task-changes.ts";
import { ServiceError } from "../../model/errors.ts";
import { PageInfo } from "../../model/page-info.ts";
import { chooseFormat } from "../../resolvers/choose-format.ts";

/** Where the files of a task belong, below the library's folder. */
export interface FilePaths {
  /** Names of the folders, one in the other. */
  folders: readonly string[];
  /** Names of the files, in the order of `task.files`; the one that describes the medium last. */
  names: readonly string[];
  /** What all names begin with. */
  stem: string;
}

/** Bytes of UTF-8 in a name, which most file systems limit. */
export const maxNameBytes = 255;

/** Of the file that describes the medium for media centres. */
const nfoEnding = ".nfo";

/** Characters of a value that are looked at; more cannot fit. */
const maxValueLength = 1_000;

/**
 * Names the files of a task by a template: `Uploader/2026-01-02 Title [id].mp4`, `….en.srt`, `….en.forced.vtt`, `…-thumb.jpg`.
 * Each name is in NFC, has at most 255 bytes of UTF-8 with its ending, and is valid on Windows, SMB and exFAT. A field that is
 * unknown leaves with the brackets around it and the separator before it; without any the task's id is the name.
 *
 * @param suffix Added to the name, as ` (2)`, if another file has it.
 * @param hasNfo Whether a file that describes the medium comes last.
 */
export function nameFiles(task: NamedTask, template: Template, { suffix = "", hasNfo = false } = {}): FilePaths {
  const endings = [...endingsOf(task.files ?? []), ...(hasNfo ? [nfoEnding] : [])];
  const longest = Math.max(nfoEnding.length, ...endings.map((ending) => Buffer.byteLength(ending)));
  const folders = template.parts.slice(0, -1).map((part) => renderPart(task, part, maxNameBytes));
  const last = renderPart(task, template.parts.at(-1) ?? [], maxNameBytes - longest - suffix.length);
  const stem = (last === "" ? task.id : safeName(withoutExtension(last, endings[0]?.slice(1) ?? ""))) + suffix;
  return { folders: folders.filter((name) => name !== ""), names: endings.map((ending) => stem + ending), stem };
}

/**
 * Returns what names have in common that some file system takes for one: without case, normal form and characters that are
 * not shown (HFS+ ignores these).
 */
export function foldName(name: string): string {
  if (/^[\x20-\x7e]*$/.test(name)) return name.toLowerCase();
  const visible = name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "");
  return visible.normalize("NFKC").toLowerCase().toUpperCase().toLowerCase().normalize("NFKC");
}

/** Words for what subtitles are for, as Jellyfin, Plex and Kodi read them in names. */
const roleWords = { subtitles: "", captions: ".sdh", forced: ".forced" } as const;

/** Returns what follows the stem in each name; all differ without case. */
function endingsOf(files: readonly ResultFile[]): string[] {
  const used = new Set<string>();
  return files.map((file) => {
    const extension = (/\.[a-z0-9]{1,10}$/i.exec(file.name)?.[0] ?? "").toLowerCase();
    for (let number = 1; ; number += 1) {
      const ending = `${tagOf(file)}${number === 1 ? "" : `.${number}`}${extension}`;
      if (used.has(ending.toLowerCase())) continue;
      used.add(ending.toLowerCase());
      return ending;
    }
  });
}

function tagOf({ kind, language, role = "subtitles" }: ResultFile): string {
  if (kind === "media") return "";
  if (kind === "cover") return "-thumb";
  return `.${languageInName(language)}${roleWords[role]}`;
}

/** A piece of a component; values of fields may be shortened. */
interface Piece {
  text: string;
  isValue: boolean;
}

/** Returns the text of a component within `maxBytes`: the longest value is shortened first. `""`: nothing is known. */
function renderPart(task: NamedTask, nodes: readonly TemplateNode[], maxBytes: number): string {
  const pieces = piecesOf(task, nodes);
  if (!pieces.some(({ isValue, text }) => isValue && text !== "") && nodes.some(hasField)) return "";
  for (;;) {
    const name = safeName(pieces.map(({ text }) => text).join(""));
    const excess = Buffer.byteLength(name) - maxBytes;
    if (excess <= 0) return name;
    const values = pieces.filter(({ isValue, text }) => isValue && text !== "");
    const longest = values.toSorted((one, other) => Buffer.byteLength(other.text) - Buffer.byteLength(one.text))[0];
    if (longest === undefined) return safeName(shorten(name, maxBytes));
    longest.text = shorten(longest.text, Math.max(0, Buffer.byteLength(longest.text) - excess)).trimEnd();
  }
}

function hasField(node: TemplateNode): boolean {
  return node.kind === "field" || (node.kind === "group" && node.nodes.some(hasField));
}

const separatorsAtEnd = /[\s\-_.,;–—|+&]+$/u;
const separatorsAtStart = /^[\s\-_.,;–—|+&]+/u;

/** Leaves out fields that are unknown, with the separator before them; at the start the one after them. */
function piecesOf(task: NamedTask, nodes: readonly TemplateNode[]): Piece[] {
  const pieces: Piece[] = [];
  for (const node of nodes) {
    const found = piecesOfNode(task, node);
    if (found === undefined) {
      const last = pieces.at(-1);
      if (last?.isValue === false) last.text = last.text.replace(separatorsAtEnd, "");
    } else if (node.kind === "text" && pieces.every(({ text }) => text === "")) {
      const isFirst = node === nodes[0];
      pieces.push({ text: isFirst ? node.text : node.text.replace(separatorsAtStart, ""), isValue: false });
    } else pieces.push(...found);
  }
  return pieces;
}

/** Returns undefined if its fields are unknown. */
function piecesOfNode(task: NamedTask, node: TemplateNode): Piece[] | undefined {
  if (node.kind === "text") return [{ text: node.text, isValue: false }];
  if (node.kind === "field") {
    const value = readField(task, node.names, node.format);
    const text = value === undefined ? "" : visibleText(value);
    return text === "" ? undefined : [{ text, isValue: true }];
  }
  const inner = piecesOf(task, node.nodes);
  if (hasField(node) && !inner.some(({ isValue }) => isValue)) return undefined;
  return [{ text: node.open, isValue: false }, ...inner, { text: node.close, isValue: false }];
}

/** Removes what no name may have: joiners and variation selectors stay, as they are parts of words and emoji. */
function visibleText(value: string): string {
  const text = value.slice(0, maxValueLength).toWellFormed().normalize("NFC");
  return text
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .replaceAll(
      /(?!\u200C|\u200D|\uFE0E|\uFE0F)[\p{Cf}\p{Co}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}]/gu,
      "",
    )
    .replaceAll(/[/\\:*?"<>|]/g, "_")
    .trim();
}

/** What names neither begin with (hidden files, options, home folders) nor end with. */
const refusedStart = /^(?:[\s.~-]|\u200C|\u200D|\uFE0E|\uFE0F)+/u;
const refusedEnd = /(?:[\s.]|\u200C|\u200D)+$/u;

function safeName(text: string): string {
  const name = text.normalize("NFC").replaceAll(/\s+/g, " ").replace(refusedStart, "").replace(refusedEnd, "");
  return unlikeDevice(name);
}

/** Returns the longest start of a name that fits and is a name. */
export function fitName(name: string, maxBytes: number): string {
  return Buffer.byteLength(name) <= maxBytes ? name : safeName(shorten(name, maxBytes));
}

/**
 * Returns the path below LIBRARY_DIR that the file of a page would have in an empty library.
 *
 * @param found What a resolver has returned for the page.
 * @throws ServiceError `no_media` if that is no page information; as `chooseFormat`
 */
export function previewPath(page: URL, found: unknown, template: Template): string {
  if (!Value.Check(PageInfo, found)) throw new ServiceError("no_media", "the resolver reads no pages");
  const { format } = chooseFormat(found, {});
  const name = `film.${format.ext ?? "mp4"}`;
  const { height, width } = format;
  const media = { name, mime_type: "video/mp4", size: 0, sha256: "", url: "" };
  const file = { ...media, duration: null, width, height, warnings: [] };
  const files = [{ ...media, kind: "media" as const }];
  const task = { ...newTask(page.href, {}, new Date()), info: found, file, files };
  const { folders, names } = nameFiles(task, template);
  return [...folders, ...names].join("/");
}
