import { expect, it } from "vitest";
import { findUnenforced } from "../../../src/resolvers/ytdlp/fork-server.ts";

const files = "yt-dlp may read other files";
const tcp = "yt-dlp may open TCP connections past the proxy";
const loaded = "yt-dlp may, while it is loaded, open TCP connections past the proxy";
const port = "yt-dlp may open TCP connections to the port of the proxy on other hosts";
const calls = "yt-dlp may make any system call";

it.each([
  [{ landlock: 7, seccomp: true, proxied: true }, []],
  [{ landlock: 7, seccomp: true, proxied: false }, [port]],
  [{ landlock: 7, seccomp: false, proxied: false }, [port, calls]],
  [{ landlock: 3, seccomp: true, proxied: true }, [loaded]],
  [{ landlock: 0, seccomp: true, proxied: true }, [files, loaded]],
  [{ landlock: 0, seccomp: true, proxied: false }, [files, tcp]],
  [
    { landlock: 0, seccomp: false, proxied: false },
    [files, "yt-dlp may write files", "yt-dlp may run programs", tcp, calls],
  ],
])("says what a kernel with %j does not forbid", (kernel, unenforced) => {
  expect(findUnenforced(kernel)).toEqual(unenforced);
});
