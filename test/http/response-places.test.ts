import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createResponsePlaces } from "../../src/http/responses/response-places.ts";

const newReply = () => ({ raw: new ServerResponse(new IncomingMessage(new Socket())) });

test("while a list of an owner waits for a place, only that owner's lists are cut off, once nothing was read of them for 5 s", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const places = createResponsePlaces(3);
  const unread = async (sharer: string) => {
    const reply = newReply();
    (await places.wait({ sharer }, reply)).setUnread(true);
    return reply.raw;
  };
  const bobs = await unread("bob");
  const eves = [await unread("eve"), await unread("eve")];
  const next = unread("eve");
  vi.advanceTimersByTime(4_000);
  expect([bobs, ...eves].map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
  vi.advanceTimersByTime(2_000);
  expect([bobs, ...eves].map(({ destroyed }) => destroyed)).toEqual([false, true, true]);
  expect((await next).destroyed).toBe(false);
});
