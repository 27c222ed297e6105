import { type Static, Type } from "@sinclair/typebox";
import { Entry } from "./entry.ts";
import { nullableText, oneOf, optionalFlag, optionalText } from "./schema.ts";

/** `all`, or numbers and ranges of numbers. */
const entriesPattern = "^(all|[1-9][0-9]{0,8}(-([1-9][0-9]{0,8})?)?(,[1-9][0-9]{0,8}(-([1-9][0-9]{0,8})?)?)*)$";
const entryUrl = Type.String({ minLength: 1, maxLength: 8192 });

/** Which entries of a playlist a client wants. */
export const EntriesOption = Type.Union(
  [
    Type.String({ pattern: entriesPattern, maxLength: 1000, examples: ["all", "1-20,25,40-"] }),
    Type.Array(entryUrl, { minItems: 1, maxItems: 500 }),
  ],
  {
    examples: ["all", "1-20,25"],
    description:
      'which entries of a playlist become tasks: `"all"`, their numbers from 1 on as in `"1-20,25,40-"`, or their URLs; on a page with one video it changes nothing; absent: a playlist fails',
  },
);

/** What a client wants if it has a task for the video already. */
export const IfExistsOption = oneOf(
  ["new", "reuse"],
  "what if the same video with the same options is queued, running or has its file: `new`, the default: a new task; `reuse`, the default for entries: that task",
);

/** The entry of a playlist that a task was made for. */
export const CollectionEntry = Type.Object(
  {
    id: Type.String({ description: "id of the collection that made it" }),
    index: Type.Integer({ minimum: 1, description: "which entry of the playlist it is, counted from 1" }),
    title: nullableText("title of the playlist"),
    referrer: optionalText("origin of the page that lists it, which is sent as `Referer`; absent: no page lists it"),
    entry: Type.Optional(
      Type.Object(
        {
          title: Type.Optional(Type.String()),
          uploaded_at: Type.Optional(Type.String()),
          uploader: Type.Optional(Type.String()),
          thumbnail: Type.Optional(Type.String()),
          chapters: Entry.properties.chapters,
          chapters_url: Entry.properties.chapters_url,
          subtitles: Entry.properties.subtitles,
        },
        {
          title: "EntryMetadata",
          description: "what the playlist says of it; `info` has that where its own page does not say; absent: nothing",
        },
      ),
    ),
  },
  {
    title: "CollectionEntry",
    description: "the entry of a collection that it was made for; absent: it was made alone",
  },
);
export type CollectionEntry = Static<typeof CollectionEntry>;

const memberCount = (state: string) => Type.Integer({ minimum: 0, description: `members that are ${state}` });

/** How many members of a collection are in each state. */
export const MemberCounts = Type.Object(
  {
    queued: memberCount("queued"),
    running: memberCount("running"),
    succeeded: memberCount("succeeded"),
    failed: memberCount("failed"),
    canceled: memberCount("canceled"),
  },
  { title: "MemberCounts" },
);
export type MemberCounts = Static<typeof MemberCounts>;

/** What is left to be done until a collection has all its members. */
export const Growth = Type.Object(
  {
    slice: Type.Optional(
      Type.Object(
        {
          next: optionalText("`entries_cursor` of the slice that is read next"),
          offset: Type.Integer({ minimum: 0, description: "how many entries come before that slice" }),
          made: Type.Integer({ minimum: 0, description: "the last entry that is a member, or is not wanted" }),
          urls: Type.Optional(
            Type.Array(Type.Integer({ minimum: 0 }), {
              description:
                "which URLs of `options.entries` no slice before has, counted from 0; absent: not known, or none are asked for",
            }),
          ),
        },
        { title: "EntriesSlice", description: "where reading goes on; absent: all entries are read" },
      ),
    ),
    retried: Type.Optional(
      Type.Integer({ minimum: 0, description: "the last member that was looked at in order to queue it again" }),
    ),
    is_stopped: optionalFlag("reading has failed, and goes on after a retry only"),
  },
  { title: "Growth" },
);
export type Growth = Static<typeof Growth>;

/** What differs between a collection and what was asked for: a closed list of codes, each with when it is given. */
export const collectionWarnings = {
  entries_limited: "the playlist has more entries than `MAX_ENTRIES`: the further ones are not members",
  entries_missing: "entries that were asked for are not in the playlist, or have no URL that can be fetched",
} as const satisfies Record<string, string>;

const warningDescriptions = Object.entries(collectionWarnings).map(([code, when]) => `\`${code}\`: ${when}`);

/** Stored collections may have codes of a newer release, so the schema accepts any. */
export const CollectionWarning = Type.Object(
  {
    code: Type.String({ description: warningDescriptions.join("; ") }),
    message: Type.String({ description: "what is missing, and how much of it" }),
  },
  { title: "CollectionWarning" },
);
export type CollectionWarning = Static<typeof CollectionWarning>;
