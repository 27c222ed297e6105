import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isTaken } from "../../files/disk-error.ts";
import type { FileStore, OpenResult } from "../../files/files.ts";
import { ServiceError } from "../../model/errors.ts";
import type { LibraryFile, Task } from "../../model/task.ts";
import { folderMode, type KnownNames, type OpenFolder, openPath, type OpenPath, openSubfolder } from "./folders.ts";
import { nameFiles } from "./names.ts";
import { type FileMark, isUnchanged, placeFile, type PlaceOptions, removeUnchanged } from "./place-file.ts";
import type { Template } from "./template.ts";
import type { PageInfo } from "../../model/page-info.ts";

/** How files are put into the library. */
export interface PlacementOptions {
  template: Template;
  /** Second names of the files of tasks instead of copies. */
  isLink: boolean;
  /** Permissions of files. */
  mode: number;
  /** Whether each video gets a file that describes it. */
  hasNfo: boolean;
  /** Space to keep free on the library's disk, bytes. */
  minFreeBytes: number;
}

interface Placement extends PlacementOptions {
  files: FileStore;
  root: OpenFolder;
  known: KnownNames;
  signal: AbortSignal;
  /** The files as an earlier attempt has chosen to put them there. */
  chosen: LibraryFile[] | undefined;
  /** Returns the names in a folder that are chosen for other tasks, whose files are still to be put there. */
  namesOfOthers(folders: readonly string[]): readonly string[];
  /** Stores what is chosen, before any file has such a path. */
  saveChosen(files: LibraryFile[]): Promise<void>;
}

/**
 * Puts the files of a task that has succeeded into the library, and returns them. Files that an earlier attempt has put there are
 * found again.
 *
 * @throws the file system's errors; ServiceError
 */
export async function placeTask(task: Task, placement: Placement): Promise<LibraryFile[]> {
  const { root, known, chosen } = placement;
  const sources = sourcesOf(task, placement);
  const folders = chosen?.[0]?.path.split("/").slice(0, -1) ?? nameFiles(task, placement.template).folders;
  const options = { mode: folderMode(placement.mode), known };
  await using folder = await openPath(root, folders, (parent, name) => openSubfolder(parent, name, options));
  let names: readonly string[] | undefined = chosen?.map(({ path }) => basename(path));
  if (names !== undefined && (await hasOther(names, folder, sources))) names = undefined;
  const draft = `.unreel-${task.id}`;
  for (const refused: string[] = []; ;) {
    placement.signal.throwIfAborted();
    const isNew: boolean = names === undefined;
    if (names === undefined) {
      names = await chooseNames(task, placement, folder, refused);
      const marks = await Promise.all(sources.map((source) => source.mark()));
      await placement.saveChosen(listFiles(folder, names, marks));
    }
    const placed: FileMark[] = [];
    try {
      for (const source of sources) {
        const name = names[placed.length] ?? "";
        // What has a name that was free now is another's, however much it looks like this file.
        const found = isNew ? undefined : await findPlaced(source, folder, name, draft);
        placed.push(found ?? (await placeSource(source, folder, name, { ...placement, draft })));
      }
      await known.add(folder, { files: names });
      return listFiles(folder, names, placed);
    } catch (error) {
      if (!isTaken(error)) {
        // Its draft came and went. The disk may be away, as the error says.
        await known.add(folder, {}).catch(() => {});
        throw error;
      }
      // Something else has put a file there meanwhile.
      refused.push(names[placed.length] ?? "");
      for (const [number, mark] of placed.entries()) await removeUnchanged(folder, names[number] ?? "", mark);
      names = undefined;
    }
  }
}

/**
 * Chooses names that nothing in the folder has; nor are they `refused`, or chosen for another task: that one would take a file of the same
 * size and time for its own.
 */
async function chooseNames(
  task: Task,
  placement: Placement,
  folder: OpenPath,
  refused: readonly string[],
): Promise<readonly string[]> {
  const taken = await placement.known.read(folder);
  taken.addChosen(() => placement.namesOfOthers(folder.names));
  for (const name of refused) taken.addFile(name);
  const { names } = taken.chooseFiles(task, placement.template, hasNfo(task, placement));
  for (const name of names) taken.addFile(name);
  return names;
}

function listFiles(folder: OpenPath, names: readonly string[], marks: readonly FileMark[]): LibraryFile[] {
  return marks.map(({ size, modifiedMs }, number) => ({
    path: [...folder.names, names[number] ?? ""].join("/"),
    size,
    modified_at: new Date(modifiedMs).toISOString(),
  }));
}

/** What is put into the library, and the mark that it gets. */
interface Source {
  open(): Promise<OpenResult | string>;
  mark(): Promise<FileMark>;
}

/** FAT keeps times to two seconds. */
const timeStepMs = 2_000;

function modifiedMsOf({ finished_at, created_at }: Task): number {
  return Math.floor(Date.parse(finished_at ?? created_at) / timeStepMs) * timeStepMs;
}

function hasNfo({ file, info }: Task, placement: Placement): boolean {
  return placement.hasNfo && file?.mime_type.startsWith("video/") === true && info !== null;
}

function sourcesOf(task: Task, placement: Placement): Source[] {
  const { files, isLink, template } = placement;
  const modifiedMs = modifiedMsOf(task);
  const open = async (number: number) => {
    const result = await files.open(task.id, number);
    if (result === undefined) throw new ServiceError("not_found", `file ${number} of task ${task.id} is gone`);
    return result;
  };
  const sources = (task.files ?? []).map(({ size }, number) => ({
    open: () => open(number),
    async mark() {
      if (!isLink) return { size, modifiedMs };
      const { handle } = await open(number);
      await using found = handle;
      return { size, modifiedMs: Math.floor((await found.stat()).mtimeMs) };
    },
  }));
  if (task.info === null || !hasNfo(task, placement)) return sources;
  const { stem } = nameFiles(task, template);
  const text = createNfo(task.info, task.finished_at ?? task.created_at, stem);
  return [...sources, { open: async () => text, mark: async () => ({ size: Buffer.byteLength(text), modifiedMs }) }];
}

/** Whether one of the names is that of a file that an earlier attempt has not put there. */
async function hasOther(names: readonly string[], folder: OpenFolder, sources: readonly Source[]): Promise<boolean> {
  if (names.length !== sources.length) return true;
  for (const [number, source] of sources.entries()) {
    if ((await isUnchanged(folder, names[number] ?? "", await source.mark())) === false) return true;
  }
  return false;
}

/** Returns the mark of a file that an earlier attempt has put there, whose draft may be left. */
async function findPlaced(
  source: Source,
  folder: OpenFolder,
  name: string,
  draft: string,
): Promise<FileMark | undefined> {
  const mark = await source.mark();
  if ((await isUnchanged(folder, name, mark)) !== true) return undefined;
  await rm(join(folder.path, draft), { force: true });
  return mark;
}

async function placeSource(
  source: Source,
  folder: OpenFolder,
  name: string,
  options: Omit<PlaceOptions, "modifiedMs">,
): Promise<FileMark> {
  const { modifiedMs } = await source.mark();
  const opened = await source.open();
  try {
    return await placeFile(opened, folder, name, { ...options, modifiedMs });
  } finally {
    if (typeof opened !== "string") await opened.handle.close();
  }
}

/** The number of season and episode in a file's name, as Jellyfin and Kodi look for it. */
const numbersInName = /s0*(\d+)[ ._-]?e0*(\d+)/i;

/**
 * Returns the text of the file from which Jellyfin and Kodi read what a video is, as they document it: a `<movie>`, which both read beside
 * any video; or an `<episodedetails>`, if the page states series, season and episode and `name`, that of the video's file, has both numbers
 * as in `S01E02`. Without these in the name neither looks for an episode.
 */
export function createNfo(info: PageInfo, addedAt: string, name: string): string {
  const isEpisode = isNamedEpisode(info, name);
  const { title, description, duration, uploaded_at, uploader, site_name, tags, video_id, extractor } = info;
  const date = uploaded_at?.slice(0, 10);
  const lines = [
    element("title", title),
    ...(isEpisode ? episodeElements(info) : []),
    element("plot", description),
    element("runtime", duration === null ? null : String(Math.max(1, Math.round(duration / 60)))),
    element(isEpisode ? "aired" : "premiered", date),
    element("year", date?.slice(0, 4)),
    element("studio", uploader ?? site_name),
    ...(isEpisode ? [] : tags.map((tag) => element("tag", tag))),
    element("uniqueid", video_id, ` type="${escape(extractor ?? "site")}" default="true"`),
    element("dateadded", addedAt.slice(0, 19).replace("T", " ")),
  ];
  const content = lines.filter((line) => line !== "").map((line) => `  ${line}\n`);
  const root = isEpisode ? "episodedetails" : "movie";
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<${root}>\n${content.join("")}</${root}>\n`;
}

function isNamedEpisode({ series, season_number, episode_number }: PageInfo, name: string): boolean {
  const [, season, episode] = numbersInName.exec(name) ?? [];
  if (series === undefined || season_number === undefined || episode_number === undefined) return false;
  return Number(season) === season_number && Number(episode) === episode_number;
}

function episodeElements({ series, season_number, episode_number }: PageInfo): string[] {
  const numbers = [element("season", `${season_number}`), element("episode", `${episode_number}`)];
  return [element("showtitle", series), ...numbers];
}

function element(name: string, text: string | null | undefined, attributes = ""): string {
  const escaped = escape(text ?? "");
  return escaped === "" ? "" : `<${name}${attributes}>${escaped}</${name}>`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Leaves out what is no character of XML 1.0 (§2.2). */
function escape(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "")
    .replaceAll(/[&<>"]/g, (character) => entities[character] ?? "")
    .trim();
}
