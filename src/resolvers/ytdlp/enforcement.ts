/** What the kernel offers yt-dlp's sandbox. */
export interface Kernel {
  /** Version of Landlock; 0: none. */
  landlock: number;
  /** Whether system calls are filtered. */
  seccomp: boolean;
}

/** The first version of Landlock with rules for TCP. */
const firstWithTcp = 4;

/** Returns what the kernel does not forbid yt-dlp's processes, in words; Python's own checks alone do. */
export function findUnenforced({ landlock, seccomp }: Kernel): string[] {
  return [
    ...(landlock === 0 ? ["to read other files"] : []),
    ...(landlock === 0 && !seccomp ? ["to write files", "to run programs"] : []),
    ...(landlock < firstWithTcp ? ["to open TCP connections past the proxy"] : []),
    ...(seccomp ? [] : ["to make any system call"]),
  ];
}

/** Whether sites' scripts have no network: before Node 25, its own permissions do not cover it. */
export function keepsScriptsOffline({ landlock, seccomp }: Kernel): boolean {
  const [major = 0] = process.versions.node.split(".").map(Number);
  return seccomp || landlock >= firstWithTcp || major >= 25;
}
