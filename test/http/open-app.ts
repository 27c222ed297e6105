import type { App } from "../../src/http/app.ts";
import { onTestFinished } from "vitest";
import { type AppOptions, buildApp } from "./app.ts";

/** Builds an app, which is closed after the test. */
export async function openApp(options: AppOptions = {}): Promise<App> {
  const app = await buildApp(options);
  onTestFinished(() => app.close());
  return app;
}

/** Lets the app listen on 127.0.0.1; returns its port. */
export async function listenApp(app: App): Promise<number> {
  return Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port);
}
