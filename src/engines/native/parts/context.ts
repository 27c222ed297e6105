import type { HttpClient } from "../../../net/client.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { Journal } from "./journal.ts";
import type { Quota } from "./quota.ts";

/** What the fetches of one folder share. */
export interface PartsContext {
  client: HttpClient;
  journal: Journal;
  checkpoints: Checkpoints;
  room: Quota;
  backOffMs: number;
}
