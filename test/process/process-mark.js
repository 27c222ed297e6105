import { subscribe } from "node:diagnostics_channel";

// Loaded before the service and its workers: adds the service's process id to each outgoing request. JavaScript, as each of many
// processes would load the compiler for TypeScript.
const isWorker = process.send !== undefined;
const pid = isWorker ? process.ppid : process.pid;
subscribe("undici:request:create", (message) => {
  const { request } = /** @type {{ request: { addHeader(name: string, value: string): void } }} */ (message);
  request.addHeader("x-process", `${pid}`);
});
