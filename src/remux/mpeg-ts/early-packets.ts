import { ServiceError } from "../../model/errors.ts";
import { packetLength } from "./packets.ts";

/** Packets of PIDs that no program map has named yet. */
export interface EarlyPackets {
  /**
   * Copies the packet at `at`.
   * @throws ServiceError `upstream_invalid` beyond 16 MiB.
   */
  add(bytes: Uint8Array, at: number): void;
  /** Returns the packets in order, and forgets them. */
  take(): readonly Buffer[];
}

const maxBytes = 16 * 1024 * 1024;

export function createEarlyPackets(): EarlyPackets {
  let packets: Buffer[] = [];
  return {
    add(bytes, at) {
      if ((packets.length + 1) * packetLength > maxBytes) {
        throw new ServiceError(
          "upstream_invalid",
          `the transport stream has no program map in ${maxBytes} bytes, which is the limit`,
        );
      }
      packets.push(Buffer.from(bytes.subarray(at, at + packetLength)));
    },
    take() {
      const taken = packets;
      packets = [];
      return taken;
    },
  };
}
