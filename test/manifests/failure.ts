import { expect } from "vitest";

/** Returns what a ServiceError with this code and message is equal to. */
export const failure = (code: string, message: RegExp): unknown =>
  expect.objectContaining({ name: "ServiceError", code, message: expect.stringMatching(message) });
