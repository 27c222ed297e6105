import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { get, localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";
import { listen } from "./listen.ts";

/** A self-signed certificate for video.test, made for this test. */
const cert = readFileSync(`${import.meta.dirname}/fixtures/tls-cert.pem`, "utf8");
const key = readFileSync(`${import.meta.dirname}/fixtures/tls-key.pem`, "utf8");
const lookup = async () => [{ address: "127.0.0.1", family: 4 }];

async function startTlsUpstream(location?: string) {
  const names: unknown[] = [];
  const server = createServer({ cert, key }, (_request, response) => {
    if (location === undefined) response.end("page");
    else response.writeHead(302, { location }).end();
  });
  server.on("secureConnection", (socket: TLSSocket) => names.push(socket.servername));
  const port = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { names, url: (host: string) => new URL(`https://${host}:${port}/`) };
}

it("does not trust a self-signed certificate", async () => {
  const upstream = await startTlsUpstream();
  await expect(get(localClient({ lookup }), upstream.url("video.test"))).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: expect.stringContaining("the server's certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"),
  });
});

it("says that a server of plain HTTP does not speak HTTPS", async () => {
  const plain = await startUpstream((_request, response) => response.end("plain page"));
  const url = new URL(plain.url("/").href.replace("http:", "https:"));
  await expect(get(localClient(), url)).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: expect.stringContaining("the server does not speak HTTPS on this port (ERR_SSL_WRONG_VERSION_NUMBER)"),
  });
});

describe("with the certificate trusted", () => {
  beforeEach(() => {
    const trusted = getCACertificates();
    setDefaultCACertificates([...trusted, cert]);
    return () => setDefaultCACertificates(trusted);
  });

  it("verifies the name, though it connects to the checked address", async () => {
    const upstream = await startTlsUpstream();
    expect(await read(localClient({ lookup }), upstream.url("video.test"))).toBe("page");
    expect(upstream.names).toEqual(["video.test"]);
  });

  it.each(["other.test", "127.0.0.1"])("refuses a certificate that is not for %s", async (host) => {
    const upstream = await startTlsUpstream();
    await expect(get(localClient({ lookup }), upstream.url(host))).rejects.toMatchObject({
      code: "upstream_unreachable",
      message: expect.stringContaining("the server's certificate is not trusted (ERR_TLS_CERT_ALTNAME_INVALID)"),
    });
  });

  it("follows a redirect from https to http", async () => {
    const plain = await startUpstream((_request, response) => response.end("plain page"));
    const upstream = await startTlsUpstream(plain.url("/").href);
    expect(await read(localClient({ lookup }), upstream.url("video.test"))).toBe("plain page");
  });
});
