import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Metafile } from "esbuild";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { findMatch } from "../responses/etag.ts";

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
  /** On the first visit, so that the start does not wait for it. */
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

interface WebFiles {
  page: WebFile;
  /** The web app manifest, with which the page can be installed and shared to. */
  manifest: WebFile;
  /** The files that both refer to, by path. A path contains a hash of all assets, so its file never changes. */
  assets: ReadonlyMap<string, WebFile>;
}

/**
 * Bundles `web/` of the folder `src`, by default that of the service, with the packages that it imports. esbuild does
 * so in a process of its own, which has ended when this returns; run one build at a time.
 *
 * @throws Error if a file is missing or is no valid source, or esbuild cannot be started.
 */
export async function buildWebFiles(src = new URL("../../", import.meta.url)): Promise<WebFiles> {
  const folder = fileURLToPath(new URL("web/", src));
  const { files, imports } = await bundle(folder);
  const hash = createHash("sha256")
    .update(JSON.stringify([...files].map(([name, bytes]) => [name, bytes.toString("base64")])))
    .digest("base64url");
  const prefix = `assets/${hash.slice(0, 16)}/`;
  const read = async (name: string): Promise<string> => {
    const text = await readFile(`${folder}${name}`, "utf8");
    return text.replaceAll(/"([\w.-]+)"/g, (quoted, asset: string) =>
      files.has(asset) ? `"${prefix}${asset}"` : quoted,
    );
  };
  const preloads = importsOf(imports).map((name) => `<link rel="modulepreload" href="${prefix}${name}" />\n`);
  const page = (await read("index.html")).replace(/^.*<script /m, `${preloads.join("")}$&`);
  return {
    page: createWebFile("text/html; charset=utf-8", page),
    manifest: createWebFile("application/manifest+json", await read("manifest.webmanifest")),
    assets: new Map(
      [...files].map(([name, bytes]) => [
        prefix + name,
        createWebFile(types[extname(name)] ?? "application/octet-stream", bytes),
      ]),
    ),
  };
}

interface Bundle {
  /** The bundled files, by name. */
  files: ReadonlyMap<string, Buffer>;
  imports: Metafile["outputs"];
}

async function bundle(folder: string): Promise<Bundle> {
  // Loaded for the first visit only: the service starts without it.
  const { build, stop } = await import("esbuild");
  try {
    const { outputFiles, metafile } = await build({
      absWorkingDir: folder,
      outdir: folder,
      write: false,
      metafile: true,
      entryPoints: ["main.ts", "style.css", "icon.svg", "icon.png"],
      loader: { ".svg": "copy", ".png": "copy" },
      bundle: true,
      splitting: true,
      format: "esm",
      minify: true,
      charset: "utf8",
      // Not the one of the sources: it is not there in an image.
      tsconfigRaw: {},
      logLevel: "silent",
    });
    const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
    return { files, imports: metafile.outputs };
  } finally {
    await stop();
  }
}

/** Returns the modules that the browser needs to run the first one, without that. */
function importsOf(outputs: Metafile["outputs"]): string[] {
  const found = new Set(["main.js"]);
  for (const each of found) {
    for (const { path, kind } of outputs[each]?.imports ?? []) {
      if (kind === "import-statement") found.add(path);
    }
  }
  return [...found].slice(1);
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

/** Content codings (RFC 9110 §8.4.1), best first. */
const codings = ["br", "gzip", "identity"] as const;
type Coding = (typeof codings)[number];

/** One file that browsers get. */
interface WebFile {
  type: string;
  /** Weak, as it is the same for every coding (RFC 9110 §8.8.1). */
  etag: string;
  /** Returns the file in that coding, which is made once. */
  encode(coding: Coding): Promise<Buffer>;
}

function createWebFile(type: string, content: string | Buffer): WebFile {
  const bytes = Buffer.from(content);
  const encoded = new Map<Coding, Promise<Buffer>>();
  return {
    type,
    etag: `W/"${createHash("sha256").update(bytes).digest("base64url")}"`,
    encode: (coding) => encoded.getOrInsertComputed(coding, () => encoders[coding](bytes)),
  };
}

const encoders: Record<Coding, (bytes: Buffer) => Promise<Buffer>> = {
  // Its defaults are the best compression.
  br: promisify<Buffer, Buffer>(brotliCompress),
  gzip: (bytes) => compress(bytes, { level: 9 }),
  identity: async (bytes) => bytes,
};

const compress = promisify(gzip);
