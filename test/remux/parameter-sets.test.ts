import { expect, it } from "vitest";
import { avc } from "../../src/remux/codecs/avc.ts";
import { hevc } from "../../src/remux/codecs/hevc.ts";

const u = (value: number, bits: number): string => value.toString(2).padStart(bits, "0");
/** Exp-Golomb codes (ISO/IEC 23008-2 §9.2). */
const ue = (value: number): string =>
  (value + 1).toString(2).replace(/^1(.*)$/, (all, rest) => "0".repeat(rest.length) + all);
const se = (value: number): string => ue(value > 0 ? 2 * value - 1 : -2 * value);

/** Returns a NAL unit with these bits, and with emulation prevention. */
function toUnit(bits: string): Buffer {
  const bytes = bits.match(/.{1,8}/g)!.map((byte) => Number.parseInt(byte.padEnd(8, "0"), 2));
  const escaped = Buffer.from(bytes)
    .toString("latin1")
    .replaceAll(/\0\0(?=[\0-\x03])/g, "\0\0\x03");
  return Buffer.from(escaped, "latin1");
}

interface SpsParts {
  subLayers?: number;
  /** Of profile_tier_level. */
  layers?: string;
  scalingLists?: string;
  pcm?: string;
  shortTerm?: string;
  longTerm?: string;
}

/** Returns a sequence parameter set (§7.3.2.2.1) of 720 × 576 pixels of 16:11. */
function makeSps({ subLayers = 1, layers = "", scalingLists, pcm, shortTerm = ue(0), longTerm }: SpsParts): Buffer {
  const optional = (part: string | undefined): string => (part === undefined ? "0" : `1${part}`);
  const bits = [
    [u(0x4201, 16), u(0, 4), u(subLayers - 1, 3), "1", "1".repeat(96), layers],
    [ue(0), ue(1), ue(720), ue(576), "0", ue(0), ue(0), ue(4)],
    ["1", ue(3).repeat(3 * subLayers), ue(2).repeat(6)],
    [optional(scalingLists), "11", optional(pcm), shortTerm, optional(longTerm), "11"],
    ["1", "1", u(255, 8), u(16, 16), u(11, 16), "1"],
  ];
  return toUnit(bits.flat().join(""));
}

/** Of 16 × 16 and 32 × 32 with the coefficient of DC; every other list is that of the one before. */
const scalingLists = [0, 1, 2, 3].flatMap((size) =>
  Array.from({ length: size === 3 ? 2 : 6 }, (_, matrix) => {
    if (matrix % 2 === 1) return `0${ue(0)}`;
    const coefficients = Array.from({ length: size === 0 ? 16 : 64 }, (__, i) => se((i % 5) - 2));
    return ["1", ...(size > 1 ? [se(8)] : []), ...coefficients].join("");
  }),
);

/** Three pictures, then two sets that are predicted: of four flags three pictures stay, and then all four. */
const shortTerm = [
  [ue(3), ue(2), ue(1), `${ue(0)}1`.repeat(3)],
  ["1", "1", ue(0), "1", "01", "00", "1"],
  ["1", "0", ue(1), "1", "1", "01", "1"],
]
  .flat()
  .join("");

it.each<[string, SpsParts]>([
  ["nothing between", {}],
  ["profiles and levels of sub-layers", { subLayers: 3, layers: `1101${"0".repeat(12)}${"1".repeat(88 + 8 + 8)}` }],
  ["scaling lists", { scalingLists: `1${scalingLists.join("")}` }],
  ["default scaling lists", { scalingLists: "0" }],
  ["PCM", { pcm: `${u(0x77, 8)}${ue(0)}${ue(2)}1` }],
  ["short-term reference pictures", { shortTerm }],
  ["long-term reference pictures", { longTerm: `${ue(2)}${u(5, 8)}1${u(9, 8)}0` }],
])("the shape of the pixels of HEVC is read behind %s", (_, parts) => {
  const unit = makeSps(parts);
  const format = hevc.describe([
    { level: "video", id: 0, unit: Buffer.from([0x40, 1]) },
    { level: "sequence", id: 0, unit },
    { level: "picture", id: 0, unit: Buffer.from([0x44, 1]) },
  ]);
  expect(format).toMatchObject({ width: Math.round((720 * 16) / 11), height: 576 });
});

it("the shape of the pixels of H.264 is read behind scaling lists, of which one ends early", () => {
  const lists = Array.from({ length: 8 }, (_, i) => {
    if (i === 2) return "0";
    if (i === 4) return `1${se(4)}${se(-12)}`;
    return `1${Array.from({ length: i < 6 ? 16 : 64 }, (__, k) => se((k % 3) - 1)).join("")}`;
  });
  const bits = [
    // ISO/IEC 14496-10 §7.3.2.1.1, of the High profile.
    [u(0x67, 8), u(100, 8), u(0, 8), u(30, 8), ue(0), ue(1), ue(0), ue(0), "0", "1", ...lists],
    [ue(0), ue(0), ue(2), ue(1), "0", ue(44), ue(35), "1", "1", "0"],
    ["1", "1", u(255, 8), u(16, 16), u(11, 16), "0000", "1"],
  ];
  const format = avc.describe([
    { level: "sequence", id: 0, unit: toUnit(bits.flat().join("")) },
    { level: "picture", id: 0, unit: Buffer.from("68ce3c80", "hex") },
  ]);
  expect(format).toMatchObject({ width: Math.round((720 * 16) / 11), height: 576 });
});
