import { isUpstreamError } from "../../../model/errors.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { createLanguageFinder } from "../../../remux/language.ts";
import { openFile } from "../../../remux/open-file.ts";
import { listOwnTracks, openOwnTracks, type OwnTrack } from "../../../subtitles/tracks/own-tracks.ts";
import type { DownloadJob, MediaDescription, OwnSubtitles } from "../../engine.ts";
import { noDescription, type OwnDescription, readOwnDescription } from "../inspect/own-description.ts";
import type { SourceName } from "../sources/plan.ts";
import { type FetchedText, missingWarning } from "./fetch-texts.ts";
import { atMostMaxCues } from "../../../subtitles/text.ts";
import type { TextStore } from "./text-store.ts";
import { type Chapter, cutTimes, type Tags, withEnds } from "../../../remux/additions.ts";
import type { MediaPosition } from "./place-cues.ts";

type TextJob = Pick<DownloadJob, "subtitles" | "ownSubtitles">;

/** What a file has of subtitles. */
interface OwnTexts {
  tracks: readonly OwnSubtitles[];
  /** Those that are wanted and have text. */
  texts: readonly FetchedText[];
  warnings: readonly FileWarning[];
}

/** Collects what the files say themselves that are the only ones of their sources. */
export function createOwnAdditions(
  job: TextJob,
  { isDescribed, ...deps }: { isDescribed: boolean; store: TextStore; signal: AbortSignal },
) {
  const found = new Map<SourceName, OwnTexts>();
  let description = noDescription;
  const all = () => [...found.values()];
  return {
    /** Reads the file of a source, and files that continue it, instead of what was read before. @throws as `readOwnTexts` */
    async read(source: SourceName, paths: readonly [string, ...string[]]): Promise<void> {
      found.set(source, await readOwnTexts(paths, job, deps));
      if (isDescribed && source === "main") description = await readOwnDescription(paths[0]);
    },
    /** Of the media, if that is of use. */
    description: () => description,
    tracks: () => all().flatMap(({ tracks }) => tracks),
    texts: () => all().flatMap(({ texts }) => texts),
    warnings: () => all().flatMap(({ warnings }) => warnings),
  };
}

/** Their times are those of the file that has them. */
const place = { timeline: 0, offsetS: 0, fromS: 0, lastsS: 0 };

/**
 * Reads the tracks of text of a file that are in a language that the job wants, and in which it has no subtitles that are listed.
 *
 * @throws the file system's own errors; `signal.reason`
 */
async function readOwnTexts(
  [path, ...further]: readonly [string, ...string[]],
  job: TextJob,
  { store, signal }: { store: TextStore; signal: AbortSignal },
): Promise<OwnTexts> {
  const tracks = listOwnTracks(path);
  const wanted = wantedOf(tracks, job);
  if (wanted.length === 0) return { tracks, texts: [], warnings: [] };
  const texts: FetchedText[] = [];
  const warnings: FileWarning[] = [];
  using opened = new DisposableStack();
  const open = (each: string) => opened.use(openFile(each));
  const files = [open(path), ...further.map(open)] as const;
  const warnIfDamaged = async (named: readonly OwnTrack[], read: () => Promise<void>) => {
    try {
      await read();
    } catch (error) {
      signal.throwIfAborted();
      if (!isUpstreamError(error) && !(error instanceof RangeError)) throw error;
      warnings.push(...named.map((track) => missingWarning(track, `those within the media: ${error.message}`)));
    }
  };
  await warnIfDamaged(wanted, async () => {
    const readers = await openOwnTracks(files, wanted, signal);
    for (const track of wanted) {
      const { language, name, role, number } = track;
      await warnIfDamaged([track], async () => {
        const stored = await store.keep(async (sink) => {
          const cues = readers.get(number)?.((bytes) => sink.count(bytes)) ?? [];
          await sink.add({ cues: atMostMaxCues(cues), map: null, place, isMp4: true });
        });
        if (stored.hasCues) texts.push({ wanted: { language, name, role, automatic: false }, stored, lost: null });
      });
    }
  });
  return { tracks, texts, warnings };
}

/** Returns the tracks of text that a job wants: a tag stands for what it stands for among those that are listed. */
function wantedOf(tracks: readonly OwnTrack[], { subtitles, ownSubtitles: asked }: TextJob): OwnTrack[] {
  const texts = tracks.filter(({ isText }) => isText);
  const listed = subtitles.filter(({ role }) => role !== "forced").map(({ language }) => language);
  const tags = texts.map(({ language }) => language);
  const findText = createLanguageFinder(tags);
  const findListed = createLanguageFinder(listed);
  const found = asked === "all" ? tags : asked.map((tag) => tags[findText(tag)]);
  return texts.filter(({ language }) => {
    // It may be in any language.
    if (language === null) return asked.length > 0 && !listed.includes(null);
    return found.includes(language) && findListed(language) < 0;
  });
}

/** Returns what a file says of its media: what the page says, and besides that what the media say themselves. */
export function mergeDescriptions(
  { tags, name, chapters }: MediaDescription,
  own: OwnDescription,
  { originS, cut, isPublished = false }: MediaPosition,
): OwnDescription {
  const title = tags.title ?? own.tags.title ?? name;
  // Its own tags stay, its chapters and its cover.
  if (isPublished) return { tags: { ...tags, title }, chapters, cover: null };
  const said = Object.entries(tags).map(([field, value]) => [field, value ?? own.tags[field as keyof Tags]]);
  const merged = { ...(Object.fromEntries(said) as Tags), title };
  const isOwn = chapters.length === 0;
  if (!isOwn && cut === undefined) return { tags: merged, chapters, cover: own.cover };
  // Those of the page count from the first frame.
  const moved = moveChapters(withEnds(isOwn ? own.chapters : chapters), isOwn ? -originS : cut!.zeroS);
  return { tags: merged, chapters: cut === undefined ? moved : cutTimes(moved, cut.kept), cover: own.cover };
}

function moveChapters(chapters: readonly Chapter[], byS: number): Chapter[] {
  return chapters.map((chapter) => ({
    ...chapter,
    startS: Math.max(0, chapter.startS + byS),
    endS: chapter.endS + byS,
  }));
}
