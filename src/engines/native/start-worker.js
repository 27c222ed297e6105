import { enableCompileCache, flushCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// As src/start.js does for the process: a thread starts in less than half the time, with 25 MB less.
enableCompileCache(fileURLToPath(new URL("../../../node_modules/.cache/unreel", import.meta.url)));
await import("./worker.ts");
flushCompileCache();
