import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Returns the response of a connection that is to be sent next; undefined if there is none. Its request may
 * still be arriving. Node keeps it on the socket, and its own error handler reads it too.
 */
export function pendingResponse(socket: Socket): ServerResponse | undefined {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return response ?? undefined;
}
