import { loadProgram } from "../../../system/load-program.js";

await loadProgram(new URL("./worker.ts", import.meta.url));
