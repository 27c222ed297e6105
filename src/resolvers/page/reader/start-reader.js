import { loadProgram } from "../../../system/load-program.js";

await loadProgram(new URL("./reader-program.ts", import.meta.url));
