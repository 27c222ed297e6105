import { makeVideoEntry } from "../mp4/sample-entry.ts";
import type { AccessUnit } from "../nal/nal-units.ts";
import type { SequenceFormat } from "../nal/sequence-format.ts";
import type { TrackFormat } from "../samples.ts";

/** Parses the NAL units of a video codec (H.264, HEVC). */
export interface VideoSyntax {
  /** Bytes of a NAL unit that `classify` reads. */
  readonly headerLength: number;
  /** Returns the roles of the NAL unit with its header at `at`: bits of `nal`. Missing bytes count as 0. */
  classify(bytes: Uint8Array, at: number): number;
  /** Returns whether an SEI NAL unit has a recovery point: decoding can start here. */
  isRecoveryPoint(unit: Uint8Array): boolean;
  /** Returns level and id of a parameter set; `null` if it is damaged. */
  identify(unit: Uint8Array): Pick<ParameterSet, "level" | "id"> | null;
  /** Returns `null` while sets are missing or if they are damaged. */
  describe(sets: readonly ParameterSet[]): VideoFormat | null;
  /** Creates a reader of pictures; default: all are frames, whose order is not known. */
  createPictureReader?(): PictureReader;
}

type VideoFormat = Pick<TrackFormat, "sampleEntry" | "width" | "height">;

export interface PictureReader {
  /** Reads the next access unit in decoding order. */
  next(unit: AccessUnit): Picture;
  /** Access units may be missing here: the next one is no second field, and its order is not known. */
  skip(): void;
}

export interface Picture {
  /** The `first` field of a frame, or the `second` field of the frame whose first field is the unit before. */
  part: "frame" | "first" | "second";
  /** `null`: not known. */
  order: DisplayOrder | null;
  /** Frames that others refer to are missing before it. */
  isAfterLoss: boolean;
}

/** When a picture is shown among others. */
export interface DisplayOrder {
  /** How often numbers have started again. */
  start: number;
  /** Of a picture that is shown later it is higher. */
  number: number;
  /** How long one number lasts as the stream says, seconds; `null`: it does not. */
  stepS: number | null;
}

export interface ParameterSet {
  level: "video" | "sequence" | "picture";
  id: number;
  unit: Uint8Array;
}

/** Roles of a NAL unit in an access unit; it may have several. */
export const nal = {
  /** Starts a new access unit, if the current one already has a picture. */
  start: 1,
  picture: 2,
  sync: 4,
  parameters: 8,
  /** Is not needed in an MP4: delimiters and filler. */
  filler: 16,
  message: 32,
} as const;

const maxBytes = 65_535;

/** Creates the current parameter sets of a stream; one of over 65,535 bytes is left out. */
export function createParameterSets(syntax: VideoSyntax) {
  const sets = new Map<string, ParameterSet & { content: string }>();
  /** Picture sets depend on their sequence set: another one makes them invalid. */
  const removePicturesBut = (sent: ReadonlySet<string>): void => {
    for (const [name, { level, content }] of sets) {
      if (level === "picture" && !sent.has(content)) sets.delete(name);
    }
  };
  return {
    /** Returns them in the order in which they were sent. */
    list: (): readonly ParameterSet[] => [...sets.values()],
    /** Takes the parameter sets of one access unit; returns whether any has changed. */
    take(units: readonly Buffer[]): boolean {
      const sent = new Set(units.filter(({ length }) => length <= maxBytes).map((unit) => unit.toString("latin1")));
      let isChanged = false;
      for (const content of sent) {
        const unit = Buffer.from(content, "latin1");
        const set = syntax.identify(unit);
        if (!set) continue;
        const name = `${set.level} ${set.id}`;
        if (sets.get(name)?.content === content) continue;
        if (set.level === "sequence") removePicturesBut(sent);
        sets.delete(name);
        sets.set(name, { ...set, unit, content });
        isChanged = true;
      }
      return isChanged;
    },
  };
}

/** Returns a set as a decoder configuration has it: after its length in two bytes. */
export function withLength({ unit }: ParameterSet): Buffer {
  return Buffer.concat([Buffer.from([unit.length >> 8, unit.length & 0xff]), unit]);
}

/** Returns the format of video by its sequence parameter set, with its size as shown. */
export function describeVideo(type: string, configuration: Uint8Array, sps: SequenceFormat): VideoFormat {
  const { width, height, pixelAspect } = sps;
  const sampleEntry = makeVideoEntry({ type, configuration, width, height, pixelAspect });
  return { sampleEntry, width: Math.round((width * pixelAspect[0]) / pixelAspect[1]), height };
}
