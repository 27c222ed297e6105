import { subscribe } from "node:diagnostics_channel";

// Loaded before the service: adds the process id to each outgoing request.
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { addHeader(name: string, value: string): void } };
  request.addHeader("x-process", `${process.pid}`);
});
