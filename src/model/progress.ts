import { type Static, Type } from "@sinclair/typebox";
import { nullableCount, nullableNumber, oneOf, optionalFlag } from "./schema.ts";

/** What a running task can wait for. */
const waitReasons = ["speed", "host", "library"] as const;
export type WaitReason = (typeof waitReasons)[number];

/** How far a run has come; `null` is what is not known. */
export const Progress = Type.Object(
  {
    stage: oneOf(["resolving", "downloading", "processing"], "what the run is doing"),
    downloaded_bytes: nullableCount("bytes"),
    total_bytes: nullableCount("bytes"),
    speed: nullableNumber("bytes per second"),
    eta: nullableNumber("seconds"),
    is_live: optionalFlag("a live stream is recorded; `POST /tasks/{id}/finish` ends it"),
    waiting_for: Type.Optional(
      oneOf(
        waitReasons,
        "what it waits for: `speed`: a limit of speed; `host`: a host that is left alone for a while; `library`: the library's folder; absent: nothing",
      ),
    ),
  },
  { title: "Progress" },
);

export type Progress = Static<typeof Progress>;
