import { enableCompileCache, flushCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// As in src/start.js: a worker then starts in less than half the time, with 25 MB less memory.
enableCompileCache(fileURLToPath(new URL("../../../../node_modules/.cache/unreel", import.meta.url)));
await import("./worker.ts");
flushCompileCache();
