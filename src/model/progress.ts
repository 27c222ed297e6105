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

/** Of an error of the site that was asked, in problem documents and tasks. */
export const upstreamStatus = Type.Optional(
  Type.Integer({
    description: "with the code `upstream_status`: the status of the site's response; absent: it has sent none",
  }),
);

/** Why a run has failed, in the members of a problem document. */
export const TaskFailure = Type.Object(
  {
    code: Type.String({ description: "one of the `code`s of a problem document" }),
    message: Type.String(),
    retryable: Type.Boolean(),
    upstream_status: upstreamStatus,
  },
  { title: "TaskFailure" },
);
export type TaskFailure = Static<typeof TaskFailure>;
