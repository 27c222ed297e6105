import * as fc from "fast-check";
import type { Piece } from "../../media/rendition.ts";
import type { Part } from "./streams.ts";

/** A change of a stream: of what its manifest lists, or of what its server sends. */
export const mutation = fc.record({
  kind: fc.constantFrom(
    "drop",
    "swap",
    "repeat",
    "cut",
    "cut",
    "hole",
    "empty",
    "missing",
    "replace",
    "double",
    "silent",
    "drop track",
    "double track",
    "swap tracks",
    "number",
    "lace",
    "end",
  ),
  /** Which piece. */
  at: fc.nat(1000),
  /** Another piece, or what becomes of it. */
  other: fc.nat(1000),
  /** Of a piece's bytes, thousandths. */
  share: fc.nat(1000),
  /** Cut between packets of MPEG-TS. */
  isAligned: fc.boolean(),
  /** Of which tracks, if each has pieces of its own. */
  tracks: fc.constantFrom("all", "first", "last"),
  /** Of a progressive file: its server states no length. */
  hasLength: fc.boolean(),
  /** Of what is listed in another order: the playlists of all tracks say where the times do not continue. */
  isAnnounced: fc.boolean(),
});
export type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

/** A piece as it is listed, and what the server has: `null`: nothing. */
interface ServedPiece extends Piece {
  /** Its number in the right stream. */
  index: number;
  isMissing: boolean;
}

export interface Mutated {
  parts: MutatedPart[];
  /** What the manifest lists is what the server has, piece by piece. */
  isListing: boolean;
}

interface MutatedPart extends Part {
  rendition: { init: Buffer | null; pieces: ServedPiece[] };
}

/** @param silent The stream without one of its tracks, if it has both in one part. */
export function mutate(parts: readonly Part[], wanted: Mutation, silent: readonly Part[] | undefined): Mutated {
  const served = parts.map((part): MutatedPart => ({
    ...part,
    rendition: {
      init: part.rendition.init,
      pieces: part.rendition.pieces.map((piece, index) => ({ ...piece, index, isMissing: false })),
    },
  }));
  const count = Math.min(...parts.map(({ rendition }) => rendition.pieces.length));
  const change = { ...wanted, at: wanted.at % count, other: wanted.other % (count * 100) };
  const byTracks = trackChanges[change.kind];
  if (byTracks !== undefined) return { parts: byTracks(served), isListing: change.kind !== "swap tracks" };
  const isListing = listChanges.includes(change.kind);
  const isJoined = isListing && change.isAnnounced;
  const chosen = served.filter((_, index) => isJoined || isChosen(index, served.length, change.tracks));
  for (const { rendition } of chosen) {
    const { pieces } = rendition;
    if (change.kind === "silent" && silent !== undefined) {
      const replaced = pieces.map((piece, index) => ({
        ...piece,
        data: silent[0]!.rendition.pieces[index]?.data ?? piece.data,
      }));
      rendition.pieces = change.isAligned
        ? replaced
        : pieces.with(change.at % pieces.length, replaced[change.at % pieces.length]!);
      if (change.isAligned) rendition.init = silent[0]!.rendition.init;
      continue;
    }
    if (change.kind === "number" && rendition.init !== null) {
      rendition.init = changeNumber(rendition.init, change);
      continue;
    }
    rendition.pieces = pieceChanges[change.kind]?.(pieces, change) ?? pieces;
    if (isJoined) rendition.pieces = rendition.pieces.map(withJoin);
  }
  return { parts: served, isListing };
}

/** The server has all pieces, which are listed otherwise. */
export const listChanges: readonly Mutation["kind"][] = ["drop", "swap", "repeat"];

const withJoin = (piece: ServedPiece, at: number, pieces: readonly ServedPiece[]): ServedPiece =>
  at > 0 && piece.index !== pieces[at - 1]!.index + 1 ? { ...piece, isJoin: true } : piece;

const isChosen = (index: number, count: number, tracks: Mutation["tracks"]): boolean =>
  tracks === "all" || index === (tracks === "first" ? 0 : count - 1);

const trackChanges: { [kind in Mutation["kind"]]?: (parts: MutatedPart[]) => MutatedPart[] } = {
  "drop track": (parts) => (parts.length > 1 ? parts.slice(0, 1) : parts),
  "double track": (parts) => (parts.length > 1 ? [...parts, parts[1]!] : parts),
  "swap tracks": ([first, second]) =>
    second === undefined
      ? [first!]
      : [
          { ...first!, rendition: second.rendition },
          { ...second, rendition: first!.rendition },
        ],
};

type PieceChange = (pieces: ServedPiece[], change: Mutation) => ServedPiece[];

const pieceChanges: { [kind in Mutation["kind"]]?: PieceChange } = {
  drop: (pieces, { at }) => pieces.toSpliced(at % pieces.length, 1),
  swap: (pieces, { at, other }) => {
    const [a, b] = [at % pieces.length, other % pieces.length];
    return pieces.with(a, pieces[b]!).with(b, pieces[a]!);
  },
  repeat: (pieces, { at }) => pieces.toSpliced(at % pieces.length, 0, pieces[at % pieces.length]!),
  cut: (pieces, change) => withData(pieces, change, (data) => data.subarray(0, cutAt(data, change))),
  hole: (pieces, change) =>
    withData(pieces, change, (data) => {
      const start = cutAt(data, change);
      // A loss of 16 packets shows in no counter of MPEG-TS.
      const length = change.isAligned ? 188 * (1 + (change.other % 15)) : 1 + change.other;
      return Buffer.concat([data.subarray(0, start), data.subarray(start + length)]);
    }),
  empty: (pieces, change) => withData(pieces, change, () => Buffer.alloc(0)),
  missing: (pieces, { at }) => pieces.with(at % pieces.length, { ...pieces[at % pieces.length]!, isMissing: true }),
  replace: (pieces, change) => withData(pieces, change, () => pieces[change.other % pieces.length]!.data),
  double: (pieces, change) => withData(pieces, change, (data) => Buffer.concat([data, data])),
  number: (pieces, change) => withData(pieces, change, (data) => changeNumber(data, change)),
  lace: (pieces, change) => withData(pieces, change, (data) => changeLace(data, change)),
  end: (pieces, change) => {
    const last = { ...change, at: pieces.length - 1 };
    return withData(pieces, last, (data) => data.subarray(0, cutAt(data, change)));
  },
};

function withData(pieces: ServedPiece[], { at }: Mutation, change: (data: Buffer) => Buffer): ServedPiece[] {
  const piece = pieces[at % pieces.length]!;
  return pieces.with(at % pieces.length, { ...piece, data: change(piece.data) });
}

function cutAt({ length }: Buffer, { share, isAligned }: Mutation): number {
  const at = Math.floor((share * length) / 1000);
  return isAligned ? at - (at % 188) : at;
}

/** By how much a number may grow. */
export const maxNumberChange = 1 + 2 * 977;

/** Changes a number of an edit list or of the times of an MP4. */
function changeNumber(data: Buffer, { at, other }: Mutation): Buffer {
  const places = [...data.toString("latin1").matchAll(/elst|stts|ctts|tfdt|mdhd|mvhd/g)].map(({ index }) => index);
  if (places.length === 0) return data;
  const changed = Buffer.from(data);
  const type = places[at % places.length]!;
  const place = type + 8 + 4 * (other % 4);
  // An empty table has no number: what comes after it is the next box.
  const end = Math.min(data.length, type - 4 + data.readUInt32BE(type - 4));
  if (place + 4 > end) return data;
  changed.writeUInt32BE((changed.readUInt32BE(place) + 1 + (other % 3) * 977) >>> 0, place);
  return changed;
}

const cluster = 0x1f43b675;

/** Changes how frames share the blocks of a Matroska file (RFC 9559 §10.3). */
function changeLace(data: Buffer, { at, other }: Mutation): Buffer {
  if (data.readUInt32BE(0) !== cluster) return data;
  const blocks = /\xa3(?:[\x80-\xff]|[\x40-\x7f].)[\x81\x82]/gs;
  const heads = [...data.toString("latin1").matchAll(blocks)].map(({ index, 0: head }) => index + head.length);
  if (heads.length === 0) return data;
  const changed = Buffer.from(data);
  // After the track and a time of two bytes come the flags; of a lace, then the count of its frames and their sizes.
  const flags = heads[at % heads.length]! + 2;
  const isLaced = ((data[flags] ?? 0) & 0x06) !== 0;
  const place = flags + (isLaced ? other % 3 : 0);
  if (place < data.length) changed[place] = (changed[place]! + 2 + (other % 7)) & 0xff;
  return changed;
}
