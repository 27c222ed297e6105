import type { SubtitleRole } from "../model/entry.ts";
import { type TrackRole, trackRoles, type AudioRole } from "../model/page-info.ts";
import type { ManifestFormat } from "./manifest.ts";

/*
 * Decides from all that a manifest states whether a track is the programme.
 */

/** A DASH descriptor (ISO/IEC 23009-1 §5.8.4). */
export interface Descriptor {
  name: string;
  fields: { schemeIdUri: string; value: string };
}

/**
 * Returns the roles that DASH descriptors state: Role and Accessibility by the scheme of MPEG (§5.8.5.5), Accessibility
 * also by that of TV-Anytime, which DVB uses, and by the kinds of tracks of HTML. Other schemes and values are harmless: they choose
 * nothing.
 */
export function dashRoles(descriptors: readonly Descriptor[]): TrackRole[] {
  return distinct(
    descriptors.map(({ name, fields: { schemeIdUri, value } }) => {
      // Two views in one picture are not what a screen shows.
      if (name === "FramePacking") return "alternate";
      const scheme = schemeIdUri.trim().toLowerCase();
      const word = value.trim().toLowerCase();
      if (name === "SupplementalProperty") return isPart(scheme, word) ? "supplementary" : undefined;
      if (!isRole(name)) return undefined;
      if (scheme === mpegRoles) return trackRoles.find((role) => role === word.replaceAll("_", "-"));
      if (scheme === "about:html-kind") return htmlKinds.get(word) ?? trackRoles.find((role) => role === word);
      return audioPurposeScheme.test(scheme) ? audioPurposes.get(word) : undefined;
    }),
  );
}

/**
 * Whether a SupplementalProperty says that a track is part of the programme only: a piece of the picture (ISO/IEC 23009-1 annex H: source, x,
 * y, width, height, total width, total height), or audio that a receiver mixes with another (§5.8.5.7).
 */
function isPart(scheme: string, value: string): boolean {
  if (scheme === "urn:mpeg:dash:audio-receiver-mix:2014") return value === "1";
  if (scheme !== "urn:mpeg:dash:srd:2014") return false;
  const [, , , width = 0, height = 0, totalWidth = 0, totalHeight = 0] = value.split(",", 8).map(Number);
  return width < totalWidth || height < totalHeight;
}

/** HTML, §4.8.11.10.1 (`kind` of audio and video tracks): those that the roles of MPEG call otherwise. */
const htmlKinds: ReadonlyMap<string, TrackRole> = new Map([
  ["alternative", "alternate"],
  ["captions", "caption"],
  ["descriptions", "description"],
  ["main-desc", "description"],
  ["translation", "dub"],
]);

const audioPurposeScheme = /^urn:tva:metadata:cs:audiopurposecs:\d{4}$/;
/** ETSI TS 102 822-3-1, AudioPurposeCS. */
const audioPurposes: ReadonlyMap<string, TrackRole> = new Map([
  ["1", "description"],
  ["2", "enhanced-audio-intelligibility"],
  ["3", "commentary"],
  ["4", "commentary"],
  ["5", "commentary"],
  ["6", "main"],
]);

/** Returns the roles that an EXT-X-MEDIA states (RFC 8216bis §4.4.6.1); DEFAULT is what the role `main` of DASH is. */
export function hlsRoles(attributes: ReadonlyMap<string, string>): TrackRole[] {
  const stated = (attributes.get("CHARACTERISTICS") ?? "").slice(0, 1_000).toLowerCase().split(",");
  const found = stated.map((characteristic) => characteristics.get(characteristic.trim()));
  return distinct([isYes(attributes.get("DEFAULT")) ? "main" : undefined, ...found]);
}

/** Returns what an EXT-X-MEDIA of subtitles is for (RFC 8216bis §4.4.6.1): by FORCED, else by CHARACTERISTICS. */
export function hlsSubtitleRole(attributes: ReadonlyMap<string, string>): SubtitleRole {
  if (isYes(attributes.get("FORCED"))) return "forced";
  return hlsRoles(attributes).includes("caption") ? "captions" : "subtitles";
}

/** As `hlsSubtitleRole`, by the Role and Accessibility descriptors of an AdaptationSet of text. */
export function dashSubtitleRole(descriptors: readonly Descriptor[]): SubtitleRole {
  const stated = descriptors.filter(({ name, fields }) => isRole(name) && schemeOf(fields) === mpegRoles);
  const values = new Set(stated.map(({ fields }) => fields.value.trim().toLowerCase().replace("_", "-")));
  if (values.has("forced-subtitle")) return "forced";
  return values.has("caption") ? "captions" : "subtitles";
}

const isRole = (name: string): boolean => name === "Role" || name === "Accessibility";
const mpegRoles = "urn:mpeg:dash:role:2011";

const characteristics: ReadonlyMap<string, TrackRole> = new Map([
  ["public.accessibility.describes-video", "description"],
  ["public.accessibility.transcribes-spoken-dialog", "caption"],
  ["public.accessibility.describes-music-and-sound", "caption"],
  ["public.accessibility.enhances-speech-intelligibility", "enhanced-audio-intelligibility"],
  ["public.easy-to-read", "easyreader"],
  // Those of Apple's players (AVMediaCharacteristic).
  ["public.auxiliary-content", "supplementary"],
  ["public.translation.dubbed", "dub"],
  ["public.translation.voice-over", "dub"],
]);

/**
 * Whether one of the layouts of a REQ-VIDEO-LAYOUT (RFC 8216bis §4.4.6.2) is what a screen shows: one view, not two, and a plain picture, not a
 * sphere. Of what a layout does not name, that is the default.
 */
export function isFlat(layouts = ""): boolean {
  return layouts.split(",").some((layout) => {
    const words = layout.split("/").map((word) => word.trim().toUpperCase());
    const isPlain = (kind: string, plain: string) =>
      words.includes(plain) || !words.some((word) => word.startsWith(kind));
    return isPlain("CH-", "CH-MONO") && isPlain("PROJ-", "PROJ-RECT");
  });
}

/** Whether the value of an attribute of HLS is YES, in any case. */
export function isYes(value: string | undefined): boolean {
  return value?.toUpperCase() === "YES";
}

function distinct(roles: readonly (TrackRole | undefined)[]): TrackRole[] {
  return [...new Set(roles.filter((role) => role !== undefined))];
}

/** Whether properties say that it is for fast forward only; such tracks are never chosen. */
export function isTrickMode(descriptors: readonly Descriptor[]): boolean {
  return descriptors.some(({ name, fields }) => name.endsWith("Property") && trickModes.has(schemeOf(fields)));
}

/**
 * Returns the scheme of an EssentialProperty that is not understood: what has one must be ignored (ISO/IEC 23009-1
 * §5.8.4.8).
 */
export function unknownProperty(descriptors: readonly Descriptor[]): string | undefined {
  const unknown = descriptors.find(
    ({ name, fields }) => name === "EssentialProperty" && !understood.has(schemeOf(fields)),
  );
  return unknown?.fields.schemeIdUri;
}

const schemeOf = ({ schemeIdUri }: Descriptor["fields"]) => schemeIdUri.trim().toLowerCase();

const trickModes: ReadonlySet<string> = new Set(["http://dashif.org/guidelines/trickmode"]);

/** Colours and switching: the streams themselves state the same, or only a player that adapts needs them. */
const understood: ReadonlySet<string> = new Set([
  "urn:mpeg:mpegb:cicp:colourprimaries",
  "urn:mpeg:mpegb:cicp:matrixcoefficients",
  "urn:mpeg:mpegb:cicp:transfercharacteristics",
  "urn:mpeg:mpegb:cicp:videofullrangeflag",
  "urn:mpeg:dash:adaptation-set-switching:2016",
  "urn:mpeg:dash:period-continuity:2015",
  "urn:mpeg:dash:period-connectivity:2015",
]);

/** What a manifest states of a track against others of its kind. */
export interface TrackStatement {
  roles: readonly TrackRole[];
  /** selectionPriority or SCORE: counts between tracks of equal roles. */
  priority: number;
  /** That of separate audio, if it counts. */
  language?: string | null;
}

/**
 * Ranks the tracks of one kind, the likeliest programme first: returns 0 for it, −1 for the next, and so on; equal ones share a number.
 * `main` comes before tracks without a role, these before other versions (a dub, another angle), and last what only some
 * want, such as a description. Priorities count after that, and at last, as in most players, which language is listed first. What does not
 * state its language may be in that one.
 */
export function preferences(tracks: readonly TrackStatement[]): number[] {
  /** The languages of tracks of the same value, by it, each with its place. */
  const languages = new Map<number, Map<string, number>>();
  const values = tracks.map(({ roles, priority, language = null }) => {
    const weight = roles.reduce((sum, role) => sum + (roleWeights[role] ?? 0), 0);
    const value = weight * 2 * maxPriority + Math.min(Math.max(priority, 0), maxPriority);
    const listed = languages.getOrInsertComputed(value, () => new Map<string, number>());
    return { value, place: language === null ? 0 : listed.getOrInsert(language, listed.size) };
  });
  const sorted = values.toSorted((a, b) => b.value - a.value || a.place - b.place);
  const keyOf = ({ value, place }: (typeof values)[number]) => `${value} ${place}`;
  const ranks = new Map([...new Set(sorted.map(keyOf))].map((key, index) => [key, -index]));
  return values.map((each) => ranks.get(keyOf(each)) || 0);
}

/** `xs:unsignedInt` */
const maxPriority = 2 ** 32;

const forSome = -16;
const roleWeights: Readonly<Partial<Record<TrackRole, number>>> = {
  main: 2,
  alternate: -4,
  supplementary: -4,
  dub: -4,
  commentary: forSome,
  description: forSome,
  sign: forSome,
  caption: forSome,
  "enhanced-audio-intelligibility": forSome,
  emergency: forSome,
  easyreader: forSome,
  karaoke: forSome,
};

/**
 * Returns the formats, each separate audio with what it is to listeners. The original is `main` (DEFAULT in HLS), unless that is said of
 * several languages.
 */
export function withAudioRoles(formats: readonly ManifestFormat[]): ManifestFormat[] {
  const mains = formats.filter(({ vcodec, roles = [] }) => {
    return vcodec === "none" && roles.includes("main") && versionOf(roles) === null;
  });
  const isDecided = new Set(mains.map(({ language }) => language)).size === 1;
  const originals = new Set(isDecided ? mains : []);
  return formats.map((format) => {
    if (format.vcodec !== "none") return format;
    const stated = originals.has(format) ? "original" : (format.audio_role ?? null);
    return { ...format, audio_role: versionOf(format.roles ?? []) ?? stated };
  });
}

/** The first that is stated is what it is. */
const versions = ["description", "commentary", "dub"] as const satisfies readonly (AudioRole & TrackRole)[];

function versionOf(roles: readonly TrackRole[]): AudioRole | null {
  return versions.find((version) => roles.includes(version)) ?? null;
}
