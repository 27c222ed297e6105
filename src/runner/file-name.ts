import type { OtherFile } from "../engines/engine.ts";
import { fileName } from "../files/file-name.ts";
import type { ResultFile } from "../model/task.ts";

/**
 * Lists the files of a task with their names and URLs: `Title.mp4`, `Title.en.vtt`, `Title.en.forced.vtt`, `Title.jpg`. A
 * name that another file has gets a number.
 */
export function listFiles(
  media: Omit<ResultFile, "url">,
  others: readonly OtherFile[],
  { title, id }: { title: string | null; id: string },
): ResultFile[] {
  const names = new Set<string>();
  const withUrl = (file: Omit<ResultFile, "url">): ResultFile => {
    names.add(file.name.toLowerCase());
    return { ...file, url: `/tasks/${id}/files/${encodeURIComponent(file.name)}` };
  };
  const listed = [withUrl(media)];
  for (const { path: _, ext, ...other } of others) {
    const { kind, language, role = "subtitles" } = other;
    const tag = language != null && languagePattern.test(language) ? language : "und";
    const parts = kind === "subtitles" ? [tag, ...(role === "subtitles" ? [] : [role])] : [];
    const nameWith = (number: string) =>
      fileName(title, `.${[...parts, ...(number === "" ? [] : [number]), ext].join(".")}`, id);
    let name = nameWith("");
    for (let number = 2; names.has(name.toLowerCase()); number += 1) name = nameWith(String(number));
    listed.push(withUrl({ ...other, name }));
  }
  return listed;
}

/** RFC 5646 §4.4.1: software should allow 35 characters. */
const languagePattern = /^[a-z0-9-]{1,35}$/i;
