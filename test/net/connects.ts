import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction, Socket } from "node:net";
import { onTestFinished, vi } from "vitest";

/**
 * Returns a list of the addresses of all TCP connections, TLS included, that this process opens from
 * now on in the test. Only those to 127.0.0.1 are allowed; the others fail before a packet is sent.
 */
export function watchConnects(): string[] {
  const connects: string[] = [];
  const connect = Socket.prototype.connect;
  const spy = vi.spyOn(Socket.prototype, "connect");
  spy.mockImplementation(function (this: Socket, ...args: unknown[]) {
    const addresses = addressesOf(args.flat()[0] as Target);
    connects.push(...addresses);
    if (addresses.every((address) => address === "127.0.0.1")) {
      return Reflect.apply(connect, this, args);
    }
    const refusal = Object.assign(new Error("no connection in tests"), { code: "ENETUNREACH" });
    setImmediate(() => this.destroy(refusal));
    return this;
  });
  onTestFinished(() => spy.mockRestore());
  return connects;
}

interface Target {
  host: string;
  lookup: LookupFunction;
}

function addressesOf({ host, lookup }: Target): string[] {
  if (isIP(host) !== 0) return [host];
  let found: LookupAddress[] = [];
  lookup(host, { all: true }, (_error, addresses) => {
    found = addresses as LookupAddress[];
  });
  return found.map(({ address }) => address);
}
