import type { OtherFile } from "../engines/engine.ts";
import { fileName, withoutExtension } from "../files/file-name.ts";
import type { ResultFile } from "../model/task.ts";

/** A file of a task without its name. */
type UnnamedFile = Omit<OtherFile, "kind"> & Pick<ResultFile, "kind">;

/**
 * Lists the files of a task, the medium first, with their names and URLs: `Title.mp4`, `Title.en.vtt`,
 * `Title.en.forced.vtt`, `Title.jpg`. A name that another file has gets a number.
 */
export function listFiles(
  medium: UnnamedFile,
  others: readonly OtherFile[],
  { title, id }: { title: string | null; id: string },
): [ResultFile, ...ResultFile[]] {
  const stem = title && withoutExtension(title, medium.ext);
  const names = new Set<string>();
  const withName = ({ path: _path, ext, ...file }: UnnamedFile): ResultFile => {
    const parts = tagsOf(file);
    const nameWith = (...number: string[]) => fileName(stem, `.${[...parts, ...number, ext].join(".")}`, id);
    let name = nameWith();
    for (let number = 2; names.has(name.toLowerCase()); number += 1) name = nameWith(String(number));
    names.add(name.toLowerCase());
    return { ...file, name, url: `/tasks/${id}/files/${encodeURIComponent(name)}` };
  };
  const first = withName(medium);
  return [first, ...others.map(withName)];
}

/** Returns what the name of subtitles says of them. */
function tagsOf({ kind, language, role = "subtitles" }: Omit<UnnamedFile, "path" | "ext">): string[] {
  if (kind !== "subtitles") return [];
  const tag = languageInName(language);
  return role === "subtitles" ? [tag] : [tag, role];
}

/** Returns a tag as names of files have it; `und` if it is unknown or not a tag. */
export function languageInName(language: string | null | undefined): string {
  return language != null && languagePattern.test(language) ? language : "und";
}

/** RFC 5646 §4.4.1: software should allow 35 characters. */
const languagePattern = /^[a-z0-9-]{1,35}$/i;
