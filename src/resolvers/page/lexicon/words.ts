import { createLexicon } from "./lexicon.ts";

const hls = "hls m3u8 load-source";
const dash = "dash mpd";
const advertisements = "promo up-sell pay-wall pre-roll mid-roll post-roll vast vpaid advert sponsor commercial bumper";
const advertising = "ad ads adserver adservice";

/** Words for what describes a medium. */
export const aboutWords = "track caption subtitle poster image thumb picture title duration";

const folders =
  "sound sounds sfx ad ads advert adverts sponsor sponsors promo promos bg background backgrounds thumb thumbs";
/** Folders whose files are rarely a page's medium. */
export const doubtfulFolders: ReadonlySet<string> = new Set(folders.split(" "));

/** What the words in a name say: of the value of a field, of an object, a tag, a file or a frame. */
export const names = createLexicon({
  /** It is the URL of a medium. */
  medium: {
    part:
      `${hls} ${dash} src source file url uri href link load enclosure stream video media audio movie ` +
      "clip play manifest master play-list mp3 mp4 m4a m4v webm oga ogv flv",
    word: "web-m",
    end: "content contents",
  },
  hls: { part: hls },
  dash: { part: dash, not: "dashboard dashed" },
  manifest: { part: `${hls} ${dash}`, not: "dashboard dashed" },
  quality: { name: "low medium high sd hd uhd hq lq auto adaptive default original mobile desktop" },
  /** A language, a codec, or a manifest whose folder has the medium's name: files that differ in it alone are of one medium. */
  version: {
    name:
      "en de fr es it pt ru pl nl ja ko zh ar tr sv da no fi cs uk hu el he hi us gb br eng deu ger fra fre spa ita por rus " +
      "english german deutsch french francais spanish espanol italian italiano portuguese russian " +
      "h264 h265 x264 x265 avc hevc vp8 vp9 av1 index master manifest play-list",
  },
  fileFormat: { word: "mp3 mp4 m4a m4v aac mpeg ogg opus web-m hls dash flac" },
  /** Its elements are played one after another. */
  playlist: { part: "play-list" },
  /** What a player is set up with: an argument of JW Player's `setup`, the `source` of Plyr. */
  setUp: { name: "set-up source" },
  download: { part: "down-load" },
  /** It is a media type, or a word for one. */
  type: { part: "type format mime delivery protocol" },
  /** A frame or a tag that plays. */
  player: { part: "player embed video media watch vod stream clip film movie episode", word: "tv" },
  /** A link that is played where it is. */
  lightbox: { part: "player light-box fancy-box pop-up" },

  /** The elements of a list with this name are one medium's files, qualities or encodings. */
  variant: {
    part:
      `${dash} source src file url uri asset level bit-rate quality qualities resolution definition rendition ` +
      "representation adaptation variant format encoding transcod progressive flavor mp4 webm hls h26 " +
      "stream down-load play-back delivery cdn manifest",
    end: "media media-collection media-array version versions",
  },
  /** A text to a medium. */
  track: { part: "track caption sub-title" },
  /** A time of what the page does, not of a medium. */
  scriptTime: { part: "skip fade anim transition slide toast time-out delay cache min max" },

  advertisement: { part: advertisements, not: "promote promo-items" },
  /** An advertisement, a text, another sound or still pictures of a medium, or a part of the site. */
  never: {
    part:
      `${advertisements} caption sub-title text-to-speech audio-desc sign-lang thumb poster snap-shot first-frame sprite ` +
      "story-board trick-play i-frame-only i-frame-play-list hover logo place-holder blank " +
      "auto-play-test notification back-ground vid-bg",
    not: "promote promo-items blanket",
  },
  /** The same; such words may be in the name of a medium's file by chance. */
  neverField: {
    word:
      `${advertising} adv adtag adurl bg vbg bgvideo sfx beep chime ding howl tts ` +
      "stat stats tracking beacon license licence",
  },
  background: { part: "back-ground vid-bg", word: "bg vbg bgvideo" },
  /** A part of a medium. */
  preview: { part: "preview teaser" },
  previewField: { part: "sample" },
  /** A medium of another page, or what is around the page's own. */
  other: {
    part:
      "trailer related recommend suggest up-next similar popular trending latest most-watched " +
      "most-viewed most-read more-videos sidebar carousel",
    word:
      "next prev previous other others more picks intro outro cover hero banner slider slides rail " +
      "creative campaign help tutorial tour soundtrack bgm",
    end: "comment comments review reviews reply replies",
  },
  /** A frame that is no player: of advertisers, trackers, consent dialogues, comments and the like. */
  otherFrame: {
    part:
      "advert doubleclick syndication tagmanager tracker tracking consent cookie privacy captcha " +
      "comment disqus newsletter subscri",
    word:
      `${advertising} gtm ns analytics pixel beacon cmp gdpr like likes share social chat login signin ` +
      "oauth map maps poll survey",
  },
});

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
