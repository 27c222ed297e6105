import { ServiceError } from "../../model/errors.ts";

/** Returns the cursor of the page of tasks with a `seq` below `before`; opaque, so that its content may change. */
export function formatCursor(before: number): string {
  return Buffer.from(`${before}`).toString("base64url");
}

/** @throws ServiceError `invalid_request` if `cursor` was not made by `formatCursor`. */
export function parseCursor(cursor: string): number {
  const before = Number(Buffer.from(cursor, "base64url").toString("latin1"));
  if (Number.isSafeInteger(before) && before > 0 && formatCursor(before) === cursor) return before;
  const detail = `must be the cursor of an earlier page's "next", got ${JSON.stringify(cursor.slice(0, 60))}`;
  throw new ServiceError("invalid_request", `/cursor in the query ${detail}`, {
    faults: [{ pointer: "/cursor", detail }],
  });
}
