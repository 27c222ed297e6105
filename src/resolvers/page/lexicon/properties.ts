import { createLexicon } from "./lexicon.ts";

/** Returns each word of `first` with each of `second` after it. */
function combine(first: string, second: string): string {
  return first
    .split(" ")
    .flatMap((one) => second.split(" ").map((other) => `${one}-${other}`))
    .join(" ");
}

const titles = "title titel titre titulo titolo headline";
const described = "video media clip episode content item asset entry";
const marks = "caption id guid duration length slug";
const pictures = "poster image thumb thumb-nail still preview-image splash";

/** The names of fields with the properties of a medium. */
export const properties = createLexicon([
  ["type", "name", "media type", "type mime-type content-type media-type video-type"],
  ["format", "name", "media type, or a word for it", "mime format delivery protocol"],
  ["formatWord", "name", "such words", "hls dash m3-u8 mpd mp3 mp4 web-m"],
  ["label", "name", "label of a variant", "label quality resolution name definition res"],
  ["size", "name", "bytes, or the height", "size file-size size-in-bytes file-size-in-bytes"],
  ["width", "name", "pixels", "width frame-width video-width"],
  ["height", "name", "pixels", "height frame-height video-height vertical-resolution"],
  ["bitRate", "name", "bit/s or kbit/s", "bit-rate band-width encoding-rate tbr"],
  ["bitRate", "name", "bit/s or kbit/s", combine("total video avg average", "bit-rate")],
  ["language", "name", "language", "lang language src-lang audio-lang audio-language"],
  ["title", "end", "title", `${titles} titles titels titres titulos titolos headlines`],
  ["title", "name", "title", `name caption ${combine("video media clip", "name caption")}`],
  ["id", "end", "id", "id slug"],
  ["id", "name", "id", "key pk v code hash short-code"],
  ["pageUrl", "name", "URL of its page", "url uri link permalink href"],
  [
    "pageUrl",
    "name",
    "URL of its page",
    combine("page web-page canonical share perma", "url uri link"),
  ],
  ["duration", "part", "duration", "duration"],
  ["duration", "name", "duration", "len length run-time"],
  ["seconds", "part", "unit of a duration", "sec"],
  ["milliseconds", "part", "unit of a duration", "milli"],
  ["milliseconds", "end", "unit of a duration", "ms"],
  ["poster", "name", "picture", `${pictures} ${combine(pictures, "url uri src")}`],
  [
    "describes",
    "name",
    "field of a whole medium",
    `${titles} ${marks} name poster image description`,
  ],
  ["describes", "name", "field of a whole medium", combine(described, `${titles} ${marks}`)],
  ["describes", "name", "field of a whole medium", "tracks thumb thumbs thumb-nail thumb-nails"],
  ["describes", "name", "field of a whole medium", combine("thumb thumb-nail", "url uri src")],
  ["trackUrl", "name", "URL of a track", "file src url uri href"],
  ["trackKind", "name", "kind of a track", "kind"],
  ["trackLanguage", "name", "language of a track", "src-lang lang language code"],
  ["trackLabel", "name", "label of a track", "label name title"],
  ["loop", "end", "it starts again at its end", "loop"],
  ["muted", "end", "it is silent", "mute muted"],
  ["anyUrl", "name", "says nothing: the object's name counts", "url uri src file stream href"],
  ["anyUrl", "name", "says nothing: the object's name counts", "default auto"],
  [
    "path",
    "name",
    "a path may lack its slash",
    "file src source video stream hls dash mp4 web-m mp3",
  ],
]);
