import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { ServiceError } from "../../model/errors.ts";
import type { AddressGuard } from "../addresses/address-guard.ts";
import { toUpstreamError } from "../upstream-error.ts";
import type { Run } from "./run.ts";

/** A request with the credential of an open run, the only one of its connection. */
export interface Admitted {
  request: IncomingMessage;
  run: Run;
  /** Aborted when the connection is closed, by its client, the run or a limit. */
  signal: AbortSignal;
}

/** A response of the proxy itself; it closes the connection. */
export interface Refusal {
  status: number;
  text: string;
  /** Fields in addition to those of every refusal. */
  fields?: Record<string, string>;
}

export interface ProxyLimits {
  guard: AddressGuard;
  idleTimeoutMs: number;
}

/** RFC 9110 §15.5.8 */
const noCredential: Refusal = {
  status: 407,
  text: "a credential of an open run is required",
  fields: { "proxy-authenticate": 'Basic realm="unreel"' },
};

export type Admission = ReturnType<typeof createAdmission>;

/**
 * Creates the function that returns a request of an open run, or the refusal; undefined if its connection has had
 * one already. `runs` are the open ones by name.
 */
export function createAdmission(runs: ReadonlyMap<string, Run>, connectionsPerRun: number) {
  const used = new WeakSet<Socket>();

  return (request: IncomingMessage): Admitted | Refusal | undefined => {
    const { socket } = request;
    if (used.has(socket)) return undefined;
    used.add(socket);
    const given = parseBasicCredential(request.headers["proxy-authorization"]);
    const run = runs.get(given?.name ?? "");
    if (given === undefined || run?.isSecret(given.secret) !== true) return noCredential;
    if (!run.add(socket)) {
      const rule = `a run may have ${connectionsPerRun} connections at a time`;
      run.fail(new ServiceError("unavailable", `reading the page took too many: ${rule}`));
      return { status: 503, text: rule };
    }
    const gone = new AbortController();
    socket.once("close", () => gone.abort());
    return { request, run, signal: gone.signal };
  };
}

/**
 * Parses the value of `Proxy-Authorization` with the scheme Basic (RFC 7617 §2). Returns undefined for
 * another scheme and for a value without a colon.
 */
function parseBasicCredential(value: string | undefined): { name: string; secret: string } | undefined {
  const encoded = /^basic +([a-z\d+/]+=*)$/i.exec(value ?? "")?.[1];
  const text = Buffer.from(encoded ?? "", "base64").toString();
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { name: text.slice(0, colon), secret: text.slice(colon + 1) };
}

/** Returns the fields of a refusal. */
export function fieldsOf({ fields }: Refusal): Record<string, string> {
  return { ...fields, "content-type": "text/plain; charset=utf-8", connection: "close" };
}

/** Returns the error of a connection or request that failed; `what` names it. */
export function toProxyError(error: unknown, what: string, idleTimeoutMs: number): ServiceError {
  const failure = toUpstreamError(error, what, idleTimeoutMs);
  if (failure instanceof ServiceError) return failure;
  return new ServiceError("internal", `${what}: the proxy failed`, { cause: error });
}

/** Returns the proxy's response for an error: 403 if the address is blocked, else 504 or 502. */
export function refusalOf({ code, message }: ServiceError): Refusal {
  if (code === "address_blocked") return { status: 403, text: message };
  return { status: code === "upstream_timeout" ? 504 : 502, text: message };
}
