/** What of the kernel can be taken away; `unotify`: that it asks another process about a system call. */
export type KernelPart = "landlock" | "seccomp" | "unotify";

/** Returns a program that starts `python` where the kernel seems to lack a part, as an old one or a container's may. */
export function pythonWithout(python: string, part: KernelPart): string {
  return `#!${python} -I
import ctypes, os, platform, struct, sys
statement = lambda code, jt, jf, k: struct.pack('=HBBI', code, jt, jf, k)
fail = statement(0x06, 0, 0, 0x50000 | 38)
load, allow = (lambda offset: statement(0x20, 0, 0, offset)), statement(0x06, 0, 0, 0x7fff0000)
calls, prctl = ((317,), 157) if platform.machine() == 'x86_64' else ((277,), 167)
programs = {
    'landlock': load(0) + statement(0x35, 0, 2, 444) + statement(0x25, 1, 0, 446) + fail + allow,
    'seccomp': load(0) + statement(0x15, 3, 0, calls[0]) + statement(0x15, 0, 3, prctl) + load(16)
        + statement(0x15, 0, 1, 22) + fail + allow,
    'unotify': load(0) + statement(0x15, 0, 3, calls[0]) + load(24) + statement(0x15, 0, 1, 8) + fail + allow,
}
program = programs[${JSON.stringify(part)}]
buffer = ctypes.create_string_buffer(program)
prog = ctypes.create_string_buffer(struct.pack('@HP', len(program) // 8, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0, ctypes.get_errno()
os.execv(${JSON.stringify(python)}, [${JSON.stringify(python)}, *sys.argv[1:]])
`;
}
