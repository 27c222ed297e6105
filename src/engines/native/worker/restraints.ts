import type { HostPauses } from "../../../net/host-pauses.ts";
import type { SpeedLimit } from "../../../net/speed-limit.ts";
import type { DownloadContext } from "../../engine.ts";
import type { WorkerMessage, WorkerRequest } from "./messages.ts";

/** What the downloads of a process share. */
export interface Shared {
  speed: SpeedLimit;
  pauses: HostPauses;
}

/** Starts to hold the download of a worker to what all share: sends it what it may receive, and which hosts are left alone. */
export function startRestraints(
  { speed, pauses }: Shared,
  { onProgress, onWaiting }: Pick<DownloadContext, "onProgress" | "onWaiting">,
  send: (request: WorkerRequest) => void,
) {
  const share = speed.open();
  const unsubscribe = pauses.subscribe((pause) => send({ type: "pause", pause }));
  for (const pause of pauses.list()) send({ type: "pause", pause });

  async function grant({ id, host, bytes }: Extract<WorkerMessage, { type: "take" }>): Promise<void> {
    // A process that was taken over may send anything.
    if (!Number.isSafeInteger(bytes) || bytes < 1) return;
    send({ type: "granted", id, bytes: await share.take(host, bytes) });
  }

  return {
    /** Answers a message; ignores those that are about something else. */
    onMessage(message: WorkerMessage): void {
      if (message.type === "take") void grant(message);
      else if (message.type === "pause" && message.pause.seconds > 0) pauses.add(message.pause);
      else if (message.type === "waiting") onWaiting?.(message.isWaiting);
      else if (message.type === "progress") {
        onProgress({ ...message.progress, ...(share.hasWaited() && { waiting_for: "speed" }) });
      }
    },
    /** The download has ended. */
    stop(): void {
      share.close();
      unsubscribe();
    },
  };
}
