import { type FilePaths, fitName, foldName, maxNameBytes, nameFiles } from "./names.ts";
import type { NamedTask, Template } from "./template.ts";

/** The names in one folder, of which no two may be one to a file system without case or normal form. */
export class FolderNames {
  /** By their folded names. */
  readonly #folders = new Map<string, string>();
  readonly #files = new Set<string>();
  /** All names, also without their endings: a medium has its stem for itself. */
  readonly #taken = new Set<string>();
  /** The last number that was given to a stem, by the folded stem without one: thousands of files may have one name. */
  readonly #numbers = new Map<string, number>();

  #hasChosen = false;

  addFolder(name: string): void {
    const folded = this.#take(name);
    if (!this.#folders.has(folded)) this.#folders.set(folded, name);
  }

  addFile(name: string): void {
    this.#files.add(this.#take(name));
  }

  /** Adds the names of files that are still to be put there, on the first call: thousands may wait for a full disk. */
  addChosen(names: () => Iterable<string>): void {
    if (this.#hasChosen) return;
    this.#hasChosen = true;
    for (const name of names()) this.addFile(name);
  }

  #take(name: string): string {
    const folded = foldName(name);
    this.#taken.add(folded).add(folded.replace(/\.[a-z0-9]{1,10}$/, ""));
    return folded;
  }

  hasFolder(name: string): boolean {
    return this.#folders.get(foldName(name)) === name;
  }

  /** Returns the folder that has the name, in whatever case; else the name, with a number if a file has it. */
  chooseFolder(wanted: string): string {
    for (let number = 1; ; number += 1) {
      const suffix = number === 1 ? "" : ` (${number})`;
      const name = fitName(wanted, maxNameBytes - suffix.length) + suffix;
      const known = this.#folders.get(foldName(name));
      if (known !== undefined) return known;
      if (!this.#files.has(foldName(name))) return name;
    }
  }

  /**
   * Names the files of a task so that nothing has any of the names, nor the stem: with a number from 2 to 9, then with the task's id.
   *
   * @param hasNfo As for `nameFiles`.
   */
  chooseFiles(task: NamedTask, template: Template, hasNfo = false): FilePaths {
    const isFree = ({ stem, names }: FilePaths) => ![stem, ...names].some((name) => this.#taken.has(foldName(name)));
    const plain = nameFiles(task, template, { hasNfo });
    if (isFree(plain)) return plain;
    const stem = foldName(plain.stem);
    for (let number = (this.#numbers.get(stem) ?? 1) + 1; ; number += 1) {
      const named = nameFiles(task, template, { hasNfo, suffix: suffixOf(number, task) });
      if (!isFree(named)) continue;
      this.#numbers.set(stem, Math.min(number, lastNumber));
      return named;
    }
  }
}

/** Files after it have the id of their task. */
const lastNumber = 9;

function suffixOf(number: number, { id }: NamedTask): string {
  if (number <= lastNumber) return ` (${number})`;
  return number === lastNumber + 1 ? ` [${id}]` : ` [${id}] (${number})`;
}

/** Returns a function that names the files of one task after another as in a library that has only theirs: paths with `/`. */
export function createPaths(template: Template): (task: NamedTask) => string[] {
  const folders = new Map<string, FolderNames>();
  const openFolder = (path: string) => folders.getOrInsertComputed(path, () => new FolderNames());
  return (task) => {
    let path = "";
    for (const wanted of nameFiles(task, template).folders) {
      const parent = openFolder(path);
      const name = parent.chooseFolder(wanted);
      parent.addFolder(name);
      path += `${name}/`;
    }
    const folder = openFolder(path);
    const { names } = folder.chooseFiles(task, template);
    for (const name of names) folder.addFile(name);
    return names.map((name) => path + name);
  };
}
