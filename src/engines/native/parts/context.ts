import type { HttpClient } from "../../../net/client.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { Journal } from "./journal.ts";
import type { Room } from "./room.ts";

/** What the fetches of one folder share. */
export interface PartsContext {
  client: HttpClient;
  journal: Journal;
  checkpoints: Checkpoints;
  room: Room;
  backOffMs: number;
}
