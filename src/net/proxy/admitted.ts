import type { IncomingMessage } from "node:http";
import type { AddressGuard } from "../addresses/address-guard.ts";
import type { RunEntry } from "./run.ts";

/** A request with the credential of an open run, the only one of its connection. */
export interface Admitted {
  request: IncomingMessage;
  run: RunEntry;
  /** Aborted when the connection is closed, by its client, the run or a limit. */
  signal: AbortSignal;
}

export interface ProxyLimits {
  guard: AddressGuard;
  idleTimeoutMs: number;
}
