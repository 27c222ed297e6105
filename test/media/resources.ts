/** What a server has, by path without the first slash. */
export type Resources = Map<string, Resource>;

export interface Resource {
  type: string;
  body: Buffer;
  /** Default: made of the body; empty: it has none. */
  etag?: string;
}

export function resource(type: string, body: Buffer | string): Resource {
  return { type, body: Buffer.from(body) };
}

export function hls(text: string): Resource {
  return resource("application/vnd.apple.mpegurl", text);
}

export function dash(text: string): Resource {
  return resource("application/dash+xml", text);
}

/** All of them together; of the same path the last. */
export function merge(...all: Resources[]): Resources {
  return new Map(all.flatMap((each) => [...each]));
}
