import { createLexicon } from "./lexicon.ts";

const titles = "title titel titre titulo titolo headline";
const marks = "caption id guid duration length slug";
const pictures = "poster image thumb thumb-nail still preview-image splash";

/** The names of the fields that state a property of a medium. */
export const properties = createLexicon({
  type: { name: "type mime-type content-type media-type video-type" },
  /** A media type, or a word for one. */
  format: { name: "mime format delivery protocol" },
  /** Such a word. */
  formatWord: { name: "hls dash m3u8 mpd mp3 mp4 web-m" },
  label: { name: "label quality resolution name definition res" },
  /** In bytes, or the height. */
  size: { name: "size file-size size-in-bytes file-size-in-bytes" },
  width: { name: "width frame-width video-width" },
  height: { name: "height frame-height video-height vertical-resolution" },
  /** In bit/s or kbit/s. */
  bitRate: {
    name: `${combine(" total video avg average", "bit-rate")} band-width encoding-rate tbr`,
  },
  language: { name: "lang language src-lang audio-lang audio-language" },
  title: { name: combine(" video media clip", "name caption"), end: combine(titles, " s") },
  id: { name: "key pk v code hash short-code", end: "id slug" },
  pageUrl: {
    name: `${combine(" page web-page canonical share perma", "url uri link")} permalink href`,
  },
  duration: { name: "len length run-time", part: "duration" },
  seconds: { part: "sec" },
  milliseconds: { part: "milli", end: "ms" },
  poster: { name: combine(pictures, " url uri src") },
  /** It is about a medium as a whole. */
  describes: {
    name:
      `${combine(" video media clip episode content item asset entry", `${titles} ${marks}`)} ` +
      `name description image poster tracks ${combine("thumb thumbs thumb-nail thumb-nails", " url uri src")}`,
  },
  trackUrl: { name: "file src url uri href" },
  trackKind: { name: "kind" },
  trackLanguage: { name: "src-lang lang language code" },
  trackLabel: { name: "label name title" },
  loop: { end: "loop" },
  muted: { end: "mute muted" },
  /** It says nothing: the name of the object counts. */
  anyUrl: { name: "url uri src file stream href default auto" },
  /** Its value may be a path without a slash at its start. */
  path: { name: "file src source video stream hls dash mp4 web-m mp3" },
});

export type Property = Parameters<typeof properties.has>[1];

/** Returns each word of `first` with each of `second` after it; at the start of either, a space stands for no word. */
function combine(first: string, second: string): string {
  return first
    .split(" ")
    .flatMap((one) => second.split(" ").map((other) => [one, other].filter(Boolean).join("-")))
    .join(" ");
}
