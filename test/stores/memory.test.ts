import { createMemoryStore } from "../../src/stores/memory.ts";
import { describeTaskStore } from "../contracts/task-store.ts";

describeTaskStore("the memory store", (now, maxQueued = 10_000) =>
  createMemoryStore({ now, maxQueued }),
);
