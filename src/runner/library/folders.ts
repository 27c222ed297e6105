import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { isTaken, isUnsupported } from "../../files/disk-error.ts";
import { assertKind } from "../../files/no-follow.ts";
import { FolderNames } from "./unique-names.ts";

/** A folder that is open: whatever takes its place meanwhile, calls on `path` reach this one. */
export interface OpenFolder extends AsyncDisposable {
  path: string;
  /** Its name, as the disk has it. */
  name: string;
  /** Makes durable which files it has. */
  sync(): Promise<void>;
}

/**
 * Opens the folder at `path`. Linux finds an open folder at a path of its own, so that no program can put a link in its place; elsewhere
 * it is only looked at.
 *
 * @param isRoot It may be a symbolic link.
 * @throws the file system's errors; ServiceError `unavailable` if it is no folder, or a symbolic link
 */
export async function openFolder(path: string, name: string, isRoot = false): Promise<OpenFolder> {
  if (!isRoot) assertKind(`${JSON.stringify(name)} in LIBRARY_DIR`, await lstat(path), "folder");
  if (process.platform === "win32") return { path, name, sync: async () => {}, [Symbol.asyncDispose]: async () => {} };
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(path, O_RDONLY | O_DIRECTORY | (isRoot ? 0 : O_NOFOLLOW));
  return {
    path: process.platform === "linux" ? `/proc/self/fd/${handle.fd}` : path,
    name,
    sync: () => handle.sync(),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

export interface OpenPath extends OpenFolder {
  /** Of all folders, as the disk has them. */
  names: string[];
}

/**
 * Opens the folders below `root` one after the other, each in the one before by `openNext`; returns the last.
 *
 * @throws what `openNext` throws
 */
export async function openPath(
  root: OpenFolder,
  folders: readonly string[],
  openNext: (parent: OpenFolder, name: string) => Promise<OpenFolder>,
): Promise<OpenPath> {
  let current = await openFolder(root.path, "", true);
  const names: string[] = [];
  for (const name of folders) {
    await using parent = current;
    current = await openNext(parent, name);
    names.push(current.name);
  }
  return { ...current, names };
}

/** Names that are read and compared in one turn of the event loop: a folder may have hundreds of thousands. */
const namesAtOnce = 500;

/** Folders whose names are kept: each may have hundreds of thousands. */
const keptFolders = 8;

/** The names in the folders that were read last, as long as others change nothing there; for the jobs of one pass. */
export class KnownNames {
  /** By device and inode. */
  readonly #folders = new LRUCache<string, { changedAt: bigint; names: FolderNames }>({ max: keptFolders });

  /** Returns the names that a folder has; reads them if it has changed. */
  async read(folder: OpenFolder): Promise<FolderNames> {
    const { key, changedAt } = await markOf(folder);
    const known = this.#folders.get(key);
    const names = known?.changedAt === changedAt ? known.names : await readNames(folder);
    this.#folders.set(key, { changedAt, names });
    return names;
  }

  /** Notes what this process has just put into a folder. */
  async add(folder: OpenFolder, { folders = [], files = [] }: { folders?: string[]; files?: readonly string[] }) {
    const { key, changedAt } = await markOf(folder);
    const known = this.#folders.get(key);
    if (known === undefined) return;
    for (const name of folders) known.names.addFolder(name);
    for (const name of files) known.names.addFile(name);
    known.changedAt = changedAt;
  }
}

async function markOf({ path }: OpenFolder): Promise<{ key: string; changedAt: bigint }> {
  const { dev, ino, mtimeNs } = await stat(path, { bigint: true });
  return { key: `${dev} ${ino}`, changedAt: mtimeNs };
}

/** Reads the names that a folder has; symbolic links and the like count as folders, which are refused when they are opened. */
async function readNames(folder: OpenFolder): Promise<FolderNames> {
  const names = new FolderNames();
  for await (const entry of await opendir(folder.path, { bufferSize: namesAtOnce })) {
    if (entry.isFile()) names.addFile(entry.name);
    else names.addFolder(entry.name);
  }
  return names;
}

/**
 * Opens the folder `wanted` in another; creates it if there is none. One whose name differs only in case or normal form is taken for
 * it; if a file has the name, it gets a number.
 */
export async function openSubfolder(
  parent: OpenFolder,
  wanted: string,
  { mode, known }: { mode: number; known: KnownNames },
): Promise<OpenFolder> {
  const names = await known.read(parent);
  const name = names.chooseFolder(wanted);
  const path = join(parent.path, name);
  if (names.hasFolder(name)) return openFolder(path, name);
  try {
    await mkdir(path, { mode });
  } catch (error) {
    // Another service has made it meanwhile.
    if (isTaken(error)) return openFolder(path, name);
    throw error;
  }
  const made = await openFolder(path, name);
  // The process creates files for its user alone.
  await using handle = await open(made.path, "r");
  await setMode(handle, mode);
  await parent.sync();
  await known.add(parent, { folders: [name] });
  return made;
}

/** Sets the mode of an open file; file systems of Windows have none. */
export async function setMode(handle: FileHandle, mode: number): Promise<void> {
  try {
    await handle.chmod(mode);
  } catch (error) {
    if (!isUnsupported(error)) throw error;
  }
}

/** Returns the mode of folders whose files have `fileMode`: who may read may enter. */
export function folderMode(fileMode: number): number {
  return fileMode | 0o700 | ((fileMode & 0o044) >> 2);
}
