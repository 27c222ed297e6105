import { ascii, type Box, childrenOf, findChild, fullBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { readGroupDescriptions } from "../../src/remux/mp4/sample-groups.ts";

/** An `sgpd` and, unless `runs` is left out, an `sbgp` (ISO/IEC 14496-12 §8.9). */
export interface Groups {
  type: string;
  /** Of an `sgpd`; default: 1. */
  version?: number;
  descriptions: readonly (readonly number[])[];
  /** default_group_description_index, of version 2. */
  byDefault?: number;
  /** Counts of samples and numbers of descriptions in turn. */
  runs?: readonly number[];
}

export function describedGroups({ type, version = 1, descriptions, byDefault = 0 }: Groups): Uint8Array {
  const sizes = new Set(descriptions.map(({ length }) => length));
  const isEven = sizes.size === 1;
  const length = isEven ? [...sizes][0]! : 0;
  const fields = [...(version >= 1 ? [length] : []), ...(version >= 2 ? [byDefault] : []), descriptions.length];
  const entries = descriptions.flatMap((bytes) => [
    ...(isEven || version === 0 ? [] : [u32(bytes.length)]),
    Uint8Array.from(bytes),
  ]);
  return fullBox("sgpd", version, 0, ascii(type), u32(...fields), ...entries);
}

export function assignedGroups({ type, runs = [] }: Groups): Uint8Array {
  return fullBox("sbgp", 0, 0, ascii(type), u32(runs.length / 2, ...runs));
}

/** Returns a file or segment with boxes at the end of each box at `path`, whose samples move with it. */
export function withBoxes(bytes: Buffer, path: readonly string[], boxesAt: (index: number) => Uint8Array[]): Buffer {
  let changed = bytes;
  for (let index = 0; ; index++) {
    const parents = parentsAt(changed, path, index);
    if (parents === null) return changed;
    const added = Buffer.concat(boxesAt(index));
    const { end } = parents.at(-1)!;
    const next = Buffer.concat([changed.subarray(0, end), added, changed.subarray(end)]);
    for (const { start } of parents) next.writeUInt32BE(changed.readUInt32BE(start) + added.length, start);
    for (const at of offsetsIn(next, parents[0]!)) next.writeInt32BE(next.readInt32BE(at) + added.length, at);
    changed = next;
  }
}

/** Returns the boxes on the way to the one at `index` of those at `path`. */
function parentsAt(bytes: Buffer, path: readonly string[], index: number): Box[] | null {
  let ways: Box[][] = [[{ type: "", start: 0, body: 0, end: bytes.length }]];
  for (const type of path) {
    ways = ways.flatMap((way) => {
      return childrenOf(bytes, way.at(-1)!, type).map((found) => [...way, found]);
    });
  }
  return ways[index]?.slice(1) ?? null;
}

/** Returns where the data offsets are of the track runs in a `moof` that count from its start. */
function offsetsIn(bytes: Buffer, found: Box): number[] {
  if (found.type !== "moof") return [];
  const trafs = childrenOf(bytes, { ...found, end: found.start + bytes.readUInt32BE(found.start) }, "traf");
  const runs = trafs.flatMap((traf) => childrenOf(bytes, traf, "trun"));
  return runs.map((run) => run.body + 8);
}

/** Returns what the first track of an MP4 file says of groups: descriptions in hexadecimal digits, and its runs. */
export function groupsOf(bytes: Buffer): Record<string, { entries: string[]; runs: number[] }> {
  const parents = parentsAt(bytes, ["moov", "trak", "mdia", "minf", "stbl"], 0)!;
  const table = parents.at(-1)!;
  const assigned = childrenOf(bytes, table, "sbgp");
  return Object.fromEntries(
    assigned.map(({ body, end }) => {
      const type = bytes.toString("latin1", body + 4, body + 8);
      const runs = Array.from({ length: (end - body - 12) / 4 }, (_, i) => bytes.readUInt32BE(body + 12 + 4 * i));
      const { entries = [] } = readGroupDescriptions(bytes, table).get(type as "roll") ?? {};
      return [type, { entries: entries.map((entry) => Buffer.from(entry, "latin1").toString("hex")), runs }];
    }),
  );
}

export const hasBox = (bytes: Buffer, path: readonly string[], type: string): boolean =>
  findChild(bytes, parentsAt(bytes, path, 0)!.at(-1)!, type) !== undefined;
