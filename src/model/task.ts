import { type Static, Type } from "@sinclair/typebox";
import { FileWarning } from "./file-warnings.ts";
import { SiteVideo, subtitleRoles } from "./entry.ts";
import { videoCodecs } from "./format-ranking.ts";
import { PageInfo } from "./page-info.ts";
import {
  CollectionEntry,
  CollectionWarning,
  EntriesOption,
  Growth,
  IfExistsOption,
  MemberCounts,
} from "./collection.ts";
import { Progress, TaskFailure } from "./progress.ts";
import {
  LanguageTag,
  nullableNumber,
  nullableCount,
  nullable,
  oneOf,
  nullableText,
  time,
  optionalFlag,
  optionalText,
} from "./schema.ts";

/** How a task can end; only a client leads it back from there. */
export const endStates = ["succeeded", "failed", "canceled"] as const;
export type EndState = (typeof endStates)[number];

/** What a task can be. */
export const states = ["queued", "running", ...endStates] as const;
export type State = (typeof states)[number];

/** Whether a task in this state has ended, unless it is retried. */
export function hasEnded(state: State | undefined): state is EndState {
  return endStates.some((end) => end === state);
}

/** Whether a task in this state waits or runs. */
export function isActive(state: State | undefined): state is Exclude<State, EndState> {
  return state === "queued" || state === "running";
}

/** The transitions that a task may make; every store refuses all others with `conflict`. */
export const transitions: Readonly<Record<State, readonly State[]>> = {
  queued: ["running", "canceled"],
  running: ["queued", ...endStates],
  succeeded: [],
  failed: ["queued"],
  canceled: ["queued"],
};

/** Which subtitles a client wants. */
const SubtitleChoice = Type.Object(
  {
    languages: Type.Union([Type.Array(LanguageTag, { minItems: 1, maxItems: 60 }), Type.Literal("all")], {
      description: "BCP 47 tags; one without a region stands for any region if it is not listed itself",
    }),
    automatic: optionalFlag("also those that no person wrote, in languages without others"),
  },
  { title: "SubtitleChoice", additionalProperties: false },
);
type SubtitleChoice = Static<typeof SubtitleChoice>;

/** The categories of SponsorBlock whose segments can be left out. */
const skipCategories = [
  "sponsor",
  "selfpromo",
  "interaction",
  "intro",
  "outro",
  "preview",
  "hook",
  "filler",
  "music_offtopic",
] as const;
export type SkipCategory = (typeof skipCategories)[number];

export const MediaRange = Type.Object(
  {
    start: Type.Number({ minimum: 0, maximum: 1e7, description: "seconds from the first frame" }),
    end: Type.Union([Type.Number({ exclusiveMinimum: 0, maximum: 1e7 }), Type.Null()], {
      examples: [165.5, null],
      description: "seconds from the first frame, over `start`; `null`: the end; rounded to a frame as `start` is",
    }),
  },
  { title: "MediaRange", additionalProperties: false },
);
export type MediaRange = Static<typeof MediaRange>;

/** What a client wants to be downloaded of a page. */
export const TaskOptions = Type.Object(
  {
    format_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "a `format_id` that `/info` lists" }),
    ),
    max_height: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, description: "pixels" })),
    preferred_codecs: Type.Optional(
      Type.Array(oneOf(videoCodecs, "video codec"), {
        maxItems: videoCodecs.length,
        examples: [["h264"]],
        description:
          "video in the first of these comes before higher video in others; absent: the highest, whatever its codec",
      }),
    ),
    audio_only: optionalFlag("download only the audio"),
    audio_languages: Type.Optional(
      Type.Array(Type.Union([Type.Literal("original"), Type.Literal("all"), LanguageTag]), {
        minItems: 1,
        maxItems: 20,
        examples: [["original", "de"]],
        description:
          '`"original"`, BCP 47 tags, or `"all"`: the audio tracks of the file, the first one enabled; absent: `["original"]`',
      }),
    ),
    subtitles: Type.Optional(
      Type.Union([Type.Boolean(), SubtitleChoice], {
        examples: [{ languages: ["en", "pt-BR"] }],
        description:
          "`true`: all that people wrote; each becomes a WebVTT and a SubRip file, and a track in a file that is made",
      }),
    ),
    ranges: Type.Optional(
      Type.Array(MediaRange, {
        minItems: 1,
        maxItems: 100,
        examples: [[{ start: 80, end: 165.5 }]],
        description: "the parts of the media that the file has, joined; in order and apart; absent: the whole",
      }),
    ),
    skip: Type.Optional(
      Type.Array(oneOf(skipCategories, "category of SponsorBlock"), {
        minItems: 1,
        maxItems: skipCategories.length,
        examples: [["sponsor", "selfpromo"]],
        description: "cut out of a video of YouTube: what users of SponsorBlock have marked; absent: nothing",
      }),
    ),
    skip_mode: Type.Optional(
      oneOf(["cut", "chapters"], "what becomes of that: `cut`, the default: it is left out; or it becomes `chapters`"),
    ),
    entries: Type.Optional(EntriesOption),
    if_exists: Type.Optional(IfExistsOption),
    embed: optionalFlag(
      "where tags, chapters, cover and subtitles are written: absent: into files that the service makes; `true`: into MP4, Matroska, MP3, FLAC and Ogg files as published too; `false`: into no file",
    ),
  },
  { title: "TaskOptions", description: "what to download, and how; default: the best format" },
);
export type TaskOptions = Static<typeof TaskOptions>;

/** The file that a task has made, as it is served. */
export const TaskFile = Type.Object(
  {
    name: Type.String(),
    mime_type: Type.String(),
    size: Type.Integer({ minimum: 0, description: "bytes" }),
    sha256: Type.String({ description: "hexadecimal" }),
    duration: nullableNumber("seconds"),
    width: nullableCount("pixels"),
    height: nullableCount("pixels"),
    url: Type.String({ description: "path to download it from" }),
    warnings: Type.Optional(
      Type.Array(FileWarning, {
        description: "what differs between the media that was fetched and the file; empty: nothing",
      }),
    ),
  },
  { title: "TaskFile" },
);
export type TaskFile = Static<typeof TaskFile>;

/** One of the files that a task has made, as it is served: the medium, a text track of it, the picture of its page. */
export const ResultFile = Type.Object(
  {
    kind: oneOf(["media", "subtitles", "cover"], "what it is"),
    name: Type.String({ description: "unique in the task" }),
    language: Type.Optional(nullableText("of subtitles: BCP 47 tag; `null`: unknown")),
    role: Type.Optional(oneOf(subtitleRoles, "of subtitles: what they are for")),
    automatic: optionalFlag("of subtitles: no person wrote or translated them"),
    mime_type: Type.String(),
    size: Type.Integer({ minimum: 0, description: "bytes" }),
    sha256: Type.String({ description: "hexadecimal" }),
    url: Type.String({ description: "path to download it from" }),
  },
  { title: "ResultFile" },
);
export type ResultFile = Static<typeof ResultFile>;

export const LibraryFile = Type.Object(
  {
    path: Type.String({ description: "below the library's folder, with `/`" }),
    size: Type.Integer({ minimum: 0, description: "bytes" }),
    modified_at: time("its modification time then: it is removed only while it still has it"),
  },
  { title: "LibraryFile" },
);
export type LibraryFile = Static<typeof LibraryFile>;

/** A task as clients see it and as stores store it. Times are RFC 3339 in UTC. */
export const Task = Type.Object(
  {
    id: Type.String({ description: "UUIDv7 (RFC 9562)" }),
    url: Type.String({ description: "URL of the video page" }),
    options: TaskOptions,
    state: oneOf(states, "current state"),
    attempts: Type.Integer({ minimum: 0, description: "attempts so far" }),
    created_at: time("when it was created"),
    updated_at: time("when it last changed"),
    started_at: nullableText("when its latest run started"),
    finished_at: nullableText("when it succeeded, failed or was canceled"),
    progress: nullable(Progress, "set while it runs"),
    info: nullable(PageInfo, "the page information that the run used"),
    file: nullable(TaskFile, "set once it has succeeded, until the file is removed"),
    files: Type.Optional(
      Type.Array(ResultFile, {
        description: "all files that it has made, the one of `file` first; absent: it has none, or an old record",
      }),
    ),
    library: Type.Optional(
      Type.Array(LibraryFile, { description: "its files in the library; absent or empty: it has none there" }),
    ),
    removed_at: nullableText("when its file was removed, if that was done without the task"),
    error: nullable(TaskFailure, "why the latest run failed"),
    owner: optionalText("name of the key that created it; absent: it was made without one"),
    traceparent: optionalText("W3C Trace Context of the request that created it; absent: it had none"),
    tracestate: optionalText("goes with `traceparent`; at most 512 characters of it"),
    retry_at: Type.Optional(time("when it runs again by itself, if it waits for that after a failure")),
    finish_requested: optionalFlag("its recording is to end with what there is"),
    collection: Type.Optional(CollectionEntry),
    video: Type.Optional(SiteVideo),
    kind: Type.Optional(
      Type.Literal("collection", {
        description: "its entries are tasks of their own; absent: it is the task of one page",
      }),
    ),
    counts: Type.Optional(MemberCounts),
    lasting_failures: Type.Optional(
      Type.Integer({ minimum: 1, description: "members that failed and that no retry helps; absent: none is known" }),
    ),
    growth: Type.Optional(Growth),
    warnings: Type.Optional(
      Type.Array(CollectionWarning, { description: "of a collection: what differs from what was asked for" }),
    ),
  },
  { title: "Task" },
);
export type Task = Static<typeof Task>;
