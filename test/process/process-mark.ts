import { subscribe } from "node:diagnostics_channel";

// Loaded before the service and its workers: adds the service's process id to each outgoing request.
const isWorker = process.send !== undefined;
const pid = isWorker ? process.ppid : process.pid;
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { addHeader(name: string, value: string): void } };
  request.addHeader("x-process", `${pid}`);
});
