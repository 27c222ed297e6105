/** ISO 639-1 codes and their ISO 639-2/T codes, of the languages that video is published in. */
const alpha3 = new Map(
  (
    "af:afr am:amh ar:ara as:asm az:aze be:bel bg:bul bn:ben bo:bod bs:bos ca:cat cs:ces cy:cym da:dan " +
    "de:deu el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas fi:fin fo:fao fr:fra fy:fry ga:gle gd:gla " +
    "gl:glg gu:guj ha:hau he:heb hi:hin hr:hrv ht:hat hu:hun hy:hye id:ind ig:ibo is:isl it:ita ja:jpn " +
    "jv:jav ka:kat kk:kaz km:khm kn:kan ko:kor ku:kur ky:kir la:lat lb:ltz lo:lao lt:lit lv:lav mg:mlg " +
    "mi:mri mk:mkd ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya nb:nob ne:nep nl:nld nn:nno no:nor om:orm " +
    "or:ori pa:pan pl:pol ps:pus pt:por qu:que rm:roh ro:ron ru:rus rw:kin sa:san sd:snd si:sin sk:slk " +
    "sl:slv sm:smo sn:sna so:som sq:sqi sr:srp st:sot su:sun sv:swe sw:swa ta:tam te:tel tg:tgk th:tha " +
    "ti:tir tk:tuk tl:tgl tr:tur tt:tat ug:uig uk:ukr ur:urd uz:uzb vi:vie wo:wol xh:xho yi:yid yo:yor " +
    "zh:zho zu:zul"
  )
    .split(" ")
    .map((pair): [string, string] => [pair.slice(0, 2), pair.slice(3)]),
);

/** Returns the ISO 639-2/T code of a BCP 47 tag; `und` if it has none. */
export function iso639Of(tag: string | null): string {
  const primary = (tag?.split("-")[0] ?? "").toLowerCase();
  return alpha3.get(primary) ?? (/^[a-z]{3}$/.test(primary) ? primary : "und");
}

/** Returns the language field of a media header: three letters of five bits (ISO/IEC 14496-12 §8.4.2). */
export function bcp47ToMp4(tag: string | null): number {
  return Buffer.from(iso639Of(tag)).reduce((packed, letter) => packed * 32 + letter - 0x60, 0);
}

/** Returns the shortest BCP 47 tag for the language field of a media header; `null` if it has none. */
export function mp4ToBcp47(packed: number): string | null {
  const letters = [10, 5, 0].map((shift) => ((packed >> shift) & 31) + 0x60);
  return iso639ToBcp47(String.fromCharCode(...letters));
}

/** Returns the shortest BCP 47 tag for an ISO 639-2 code; `null` for `und` and what is no code. */
export function iso639ToBcp47(code: string): string | null {
  if (!/^[a-z]{3}$/i.test(code) || code.toLowerCase() === "und") return null;
  return new Intl.Locale(code).language;
}

/**
 * Returns a function that returns the index of the listed BCP 47 tag that stands for `asked`: itself, else the first one that begins with
 * it (RFC 4647 §3.3.1), else the first that most likely means the same script and region (`zh-Hant`: `zh-TW`), else the longest
 * that it begins with (§3.4); −1: none does. Case, `_` for `-` and codes that stand for the same language (`deu`, `ger`: `de`)
 * make no difference. The tags are parsed once, which takes microseconds each: a page can list thousands.
 */
export function createLanguageFinder(listed: readonly (string | null)[]): (asked: string) => number {
  const tags = listed.map((each) => canonical(each ?? ""));
  const likelyTags = new Map<string, string>();
  const likelyOf = (tag: string) => likelyTags.getOrInsertComputed(tag, withLikely);
  /** Returns the first listed tag that most likely means the same; it has the same language. */
  function findLikely(tag: string): string | undefined {
    const language = languageOf(tag);
    return tags.find((each) => languageOf(each) === language && likelyOf(each) === likelyOf(tag));
  }

  return (asked) => {
    const tag = canonical(asked);
    const shorter = tags.filter((each) => each !== "" && tag.startsWith(`${each}-`));
    const longest = shorter.toSorted((a, b) => b.length - a.length)[0];
    const longer = tags.find((each) => each.startsWith(`${tag}-`));
    const found = tags.includes(tag) ? tag : (longer ?? findLikely(tag) ?? longest);
    return found === undefined ? -1 : tags.indexOf(found);
  };
}

const languageOf = (tag: string): string | undefined => tag.split("-", 1)[0];

/** Returns a tag with the script and region that it leaves out (Unicode TR 35, "Likely Subtags"). */
function withLikely(tag: string): string {
  // An unknown language would be English.
  if (/^und(?:-|$)/.test(tag)) return tag;
  try {
    return new Intl.Locale(tag).maximize().toString();
  } catch {
    return tag;
  }
}

function canonical(text: string): string {
  const tag = text.replaceAll("_", "-");
  try {
    return new Intl.Locale(tag).toString().toLowerCase();
  } catch {
    // It is none of BCP 47, or of private use.
    return tag.toLowerCase();
  }
}
