import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { paceReaders } from "../../src/http/streams/task-watch.ts";

const response = () => new ServerResponse(new IncomingMessage(new Socket()));

test("the more readers an owner's streams have, the less often each looks for more; those of others look as often as before", async () => {
  const join = paceReaders();
  const responses = Array.from({ length: 1_500 }, response);
  const [first] = responses.map((each) => join("eve", each));
  const other = join("bob", response());
  expect([first?.(100), first?.(2_000), other(100)]).toEqual([1_500, 2_000, 100]);
  const closed = responses.map((each) => once(each, "close"));
  for (const each of responses) each.destroy();
  await Promise.all(closed);
  expect(first?.(100)).toBe(100);
});
