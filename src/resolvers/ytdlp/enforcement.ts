/** What the kernel offers yt-dlp's sandbox. */
interface Kernel {
  /** Version of Landlock; 0: none. */
  landlock: number;
  /** Whether system calls are filtered. */
  seccomp: boolean;
  /** Whether each connection of an extraction leads to the proxy. */
  proxied: boolean;
}

/** The first version of Landlock with rules for TCP. */
const firstWithTcp = 4;

/** Returns what the kernel does not forbid yt-dlp's processes, a sentence each; Python's own checks alone do. */
export function findUnenforced({ landlock, seccomp, proxied }: Kernel): string[] {
  return [
    ...(landlock === 0 ? ["yt-dlp may read other files"] : []),
    ...(landlock === 0 && !seccomp ? ["yt-dlp may write files", "yt-dlp may run programs"] : []),
    ...findOpenConnections(landlock, proxied),
    ...(seccomp ? [] : ["yt-dlp may make any system call"]),
  ];
}

function findOpenConnections(landlock: number, proxied: boolean): string[] {
  if (landlock < firstWithTcp) {
    return [`yt-dlp may${proxied ? ", while it is loaded," : ""} open TCP connections past the proxy`];
  }
  return proxied ? [] : ["yt-dlp may open TCP connections to the port of the proxy on other hosts"];
}
