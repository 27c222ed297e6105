import { assemble } from "../../src/engines/native/output/assemble.ts";
import { inspectFile } from "../../src/engines/native/inspect/inspect.ts";
import type { Plan } from "../../src/engines/native/sources/plan.ts";
import { openFileStream } from "../../src/engines/native/sources/source-stream.ts";
import { StreamJournal } from "../../src/files/stream-journal.ts";
import type { DownloadFormat } from "../../src/model/page-info.ts";
import { firstAudio } from "../../src/remux/audio-choice.ts";
import type { MediaRange } from "../../src/remux/samples.ts";
import { nothingToAdd } from "../remux/additions.ts";

interface AssembledOf {
  path: string;
  /** File with separate audio. */
  audio?: string;
  audioChoice?: typeof firstAudio;
  /** Of an audio file; default: the whole. */
  ranges?: MediaRange[];
  folder: string;
}

/** Makes a file of one that has been fetched, or of one and another one with its audio. */
export function assembleFile(options: AssembledOf): ReturnType<typeof assemble> {
  const { path, audio, audioChoice = firstAudio, ranges = [], folder } = options;
  const sourceOf = (role: "main" | "audio", from: string) => ({
    kind: "file",
    name: role,
    role,
    url: "http://a.test/",
    headers: () => ({}),
    format: {} as DownloadFormat,
    part: null,
    from,
  });
  const sources = [sourceOf("main", path), ...(audio === undefined ? [] : [sourceOf("audio", audio)])];
  const plan = { sources, isPassthrough: false, identity: "" } as unknown as Plan;
  const fetcher = {
    openStream: ({ name, from }: { name: "main"; from: string }) => Promise.resolve(openFileStream(name, from)),
    fetchFile: () => ({ path, complete: Promise.resolve({ path, size: 0 }), openMp4: () => Promise.resolve(null) }),
    fetchPart: () => Promise.resolve(null),
    dropPart: () => Promise.resolve(),
  };
  return assemble(plan, {
    fetcher: fetcher as never,
    folder,
    audioOnly: false,
    audioChoice,
    embed: "made",
    isAudioFile: ranges.length > 0,
    ranges,
    maxBytes: 1 << 30,
    inspect: (file) => inspectFile(file),
    withTimeLimit: (_kind, _paths, work) => work(),
    onWritten: () => {},
    additions: nothingToAdd,
    journal: new StreamJournal(folder),
    signal: new AbortController().signal,
  });
}
