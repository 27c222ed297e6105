import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { findMatch } from "../responses/etag.ts";
import { type WebFile, type WebFiles, buildWebFiles, codings } from "../web/web-files.ts";

/** Nothing from anywhere else, and no text that could become a script. */
const policy = [
  "default-src 'none'",
  ...["script", "style", "img", "media", "connect", "manifest"].map((kind) => `${kind}-src 'self'`),
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pageHeaders = {
  "content-security-policy": policy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
};

/** The web UI: its page, its manifest and, by paths that change with their content, its assets. */
export async function webRoutes(app: FastifyInstance): Promise<void> {
  let files: Promise<WebFiles> | undefined;
  /** On the first visit, so that nobody waits for it at the start. */
  const open = (): Promise<WebFiles> =>
    (files ??= buildWebFiles().catch((error: unknown) => {
      files = undefined;
      throw error;
    }));
  // Also for those who have yet to send their key.
  const options = { config: { access: "open" }, schema: { hide: true } } as const;

  app.get("/", options, async (request, reply) => {
    const { page } = await open();
    return sendCurrent(request, reply.headers(pageHeaders), page);
  });

  app.get("/manifest.webmanifest", options, async (request, reply) =>
    sendCurrent(request, reply, (await open()).manifest),
  );

  app.get<{ Params: { "*": string } }>("/assets/*", options, async (request, reply) => {
    const path = `assets/${request.params["*"]}`;
    const file = (await open()).assets.get(path);
    if (file === undefined) {
      throw new ServiceError("not_found", `this version of the page has no ${path.slice(0, 200)}`);
    }
    return send(request, reply.header("cache-control", "public, max-age=31536000, immutable"), file);
  });
}

/** Sends the file unless the client has it; clients ask each time. */
function sendCurrent(request: FastifyRequest, reply: FastifyReply, file: WebFile) {
  reply.headers({ "cache-control": "no-cache", etag: file.etag });
  if (findMatch(request.headers["if-none-match"], file.etag.slice(2)) === undefined) {
    return send(request, reply, file);
  }
  return reply.code(304).header("vary", "accept-encoding").send();
}

async function send(request: FastifyRequest, reply: FastifyReply, file: WebFile) {
  const accepted = request.accepts();
  const coding = codings.find((name) => accepted.encodings([name]) === name) ?? "identity";
  const bytes = await file.encode(coding);
  reply.headers({
    "content-type": file.type,
    "cross-origin-resource-policy": "same-origin",
    vary: "accept-encoding",
  });
  if (coding !== "identity") reply.header("content-encoding", coding);
  return reply.send(bytes);
}
