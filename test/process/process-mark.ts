import { subscribe } from "node:diagnostics_channel";

// Loaded before the service: each of its requests tells a test's server which process sent it.
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { addHeader(name: string, value: string): void } };
  request.addHeader("x-process", `${process.pid}`);
});
