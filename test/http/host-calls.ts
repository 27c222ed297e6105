import { type AppResponse, withApp } from "./failing-app.ts";

type Call = () => Promise<AppResponse>;

/** Paths whose GET does more than to read what is stored. */
const startingWork = new Set(["/download", "/info", "/info/thumbnail", "/tasks/events", "/tasks/{id}/thumbnail"]);

/** For each operation, calls that get the responses of the check of hosts, which all routes share. */
export function hostCalls(paths: Record<string, object>): Record<string, Call> {
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).flatMap((method): [string, Call][] => [
      [`${method} ${path} 400`, call(method, path, { host: "a@b/c" })],
      [`${method} ${path} 421`, call(method, path, { host: "rebind.attacker.test" })],
      ...(method === "get" && !startingWork.has(path)
        ? []
        : [[`${method} ${path} 403`, call(method, path, { "sec-fetch-site": "cross-site" })] as [string, Call]]),
    ]),
  );
  return Object.fromEntries(calls);
}

function call(method: string, path: string, headers: Record<string, string>): Call {
  const url = path.replace("{id}", "x");
  return () => withApp({}, (app) => app.inject({ method: method as "GET", url, headers }));
}
