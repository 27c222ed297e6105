"""Filters of system calls (seccomp(2)): a call that is not listed here does not exist, with arguments that are not it fails."""

import ctypes
import errno
import os
import struct
import sys

import asked_calls
import linux

_SET_MODE_FILTER, _NEW_LISTENER = 1, 1 << 3
_ARCHITECTURES = {'x86_64': 0xC000003E, 'aarch64': 0xC00000B7}

# Name, and numbers for x86_64 and aarch64; where one is missing, the architecture has no such call.
_NUMBERS = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, pwritev 296 70,
open 2 -, openat 257 56, close 3 57, close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24, lseek 8 62,
stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44,
access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getdents 78 -, getdents64 217 61,
getcwd 79 17, fcntl 72 25, ioctl 16 29, fadvise64 221 223, pipe 22 -, pipe2 293 59,
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21,
epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, eventfd 284 -, eventfd2 290 19,
socket 41 198, socketpair 53 199, connect 42 203, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
setsockopt 54 208, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, shutdown 48 210,
mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, mremap 25 216, madvise 28 233, mincore 27 232,
membarrier 324 283, futex 202 98, set_robust_list 273 99, get_robust_list 274 100, rseq 334 293,
set_tid_address 218 96, arch_prctl 158 -, gettid 186 178, getpid 39 172, getppid 110 173, getpgid 121 155,
getpgrp 111 -, getsid 124 156, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177, getresuid 118 148,
getresgid 120 150, getgroups 115 158, capget 125 90, uname 63 160, sysinfo 99 179, times 100 153, getrusage 98 165,
getrlimit 97 163, prlimit64 302 261, getpriority 140 141, sched_yield 24 124, sched_getaffinity 204 123,
sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115, nanosleep 35 101, gettimeofday 96 169,
time 201 -, getcpu 309 168, getrandom 318 278, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, restart_syscall 219 128,
pause 34 -, umask 95 166, wait4 61 260, waitid 247 95, exit 60 93, exit_group 231 94, prctl 157 167,
clone 56 220, execve 59 221, fork 57 -, vfork 58 -, kill 62 129, setitimer 38 103,
setrlimit 160 164, landlock_create_ruleset 444 444, landlock_add_rule 445 445, landlock_restrict_self 446 446,
seccomp 317 277
"""
_OF_A_SERVER = (
    # Descriptors that are sent but not received count for the user: with pairs of its own, one process could use them up.
    'socketpair',
    'fork', 'vfork', 'clone', 'execve', 'kill', 'setitimer', 'prctl', 'setrlimit', 'prlimit64',
    'landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self', 'seccomp',
)
_OF_A_SCRIPT = ('clone', 'execve')

_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)  # To duplicate, and to read and write flags; others have signals sent.
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIO(N)CLEX
_PRCTL_OPTIONS = (15, 16, 0x53564D41)  # Names of the thread and of memory.
_OPEN_TO_WRITE = 0o3 | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # and O_TMPFILE
_AF_UNIX, _AF_INET, _SOCK_STREAM, _SOCK_TYPE_MASK, _IPPROTO_TCP = 1, 2, 1, 0xF, 6
_SOL_SOCKET = 1  # Options of IP make even a socket of TCP join a group of multicast, which the network is told.
_MSG_FASTOPEN = 0x20000000  # Connects without a connect(2) that Landlock would see.
_MAP_PRIVATE, _MAP_TYPE, _MAP_GROWSDOWN = 2, 0xF, 0x100  # Limits of memory do not count shared memory and stacks.
_CLONE_THREAD, _CLONE_NEW = 0x10000, 0x7E020080
_ALL, _POINTER = 0xFFFFFFFF, 1 << 32

# What arguments must be: lists of alternatives, each of (argument, mask, value); `_POINTER + n` is the upper half of n.
_CONDITIONS = {
    'open': [[(1, _OPEN_TO_WRITE, 0)]],
    'openat': [[(2, _OPEN_TO_WRITE, 0)]],
    'socket': [
        [(0, _ALL, _AF_INET), (1, _SOCK_TYPE_MASK, _SOCK_STREAM), (2, _ALL, protocol)] for protocol in (0, _IPPROTO_TCP)
    ],
    'socketpair': [[(0, _ALL, _AF_UNIX), (1, _SOCK_TYPE_MASK, _SOCK_STREAM)]],
    'setsockopt': [[(1, _ALL, level)] for level in (_SOL_SOCKET, _IPPROTO_TCP)],
    'sendto': [[(3, _MSG_FASTOPEN, 0), (4, _ALL, 0), (_POINTER + 4, _ALL, 0)]],
    'sendmsg': [[(2, _MSG_FASTOPEN, 0)]],
    'mmap': [[(3, _MAP_TYPE | _MAP_GROWSDOWN, _MAP_PRIVATE)]],
    'fcntl': [[(1, _ALL, command)] for command in _FCNTL_COMMANDS],
    'ioctl': [[(1, _ALL, request)] for request in _IOCTL_REQUESTS],
    'prctl': [[(0, _ALL, option)] for option in _PRCTL_OPTIONS],
    'prlimit64': [[(0, _ALL, 0), (2, _ALL, 0), (_POINTER + 2, _ALL, 0)]],  # To read them.
    'clone': [[(0, _CLONE_THREAD | _CLONE_NEW, _CLONE_THREAD)]],
}
_SERVER_CONDITIONS = {
    'clone': [[(0, _CLONE_THREAD | _CLONE_NEW, value)] for value in (0, _CLONE_THREAD)],
    'ioctl': [[(1, _ALL, request)] for request in (*_IOCTL_REQUESTS, *asked_calls.REQUESTS)],
    'prlimit64': [[(0, _ALL, 0)]],  # Of itself: with other limits, the service would open no files, or be ended.
}


def restrict_server():
    """
    Filters the calls of this process, and of those that it starts, for good: no file is opened to write, no socket but of
    TCP. It may start processes, which stay in its group, and restrict them further. Returns False if the kernel has no filters for this machine.
    """
    conditions = {name: _CONDITIONS[name] for name in _CONDITIONS if name not in _OF_A_SERVER}
    try:
        return _install(_numbers().keys(), conditions | _SERVER_CONDITIONS) is not None
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES):
            return False
        raise


def restrict_extraction(asks):
    """
    As `restrict_server`, for a process that starts no other, only threads, and sends no signal. Returns the descriptor for
    `AskedCalls`, which connects and counts threads, if `asks`; else -1.
    """
    names = _numbers().keys() - {*_OF_A_SERVER} | {'prctl', 'prlimit64', 'clone'}
    if asks:
        return _install(names, _CONDITIONS, asked=asked_calls.CALLS)
    _install(names, _CONDITIONS)
    return -1


def can_ask():
    """Returns whether extractions can be restricted so that they ask; a container may allow one that asks, itself."""
    if not asked_calls.can_be_replaced():
        return False
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            restrict_extraction(asks=True)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return status == 0


def asked_numbers():
    """Returns the numbers, on this machine, of the calls that `AskedCalls` is asked about."""
    return {name: _numbers()[name] for name in asked_calls.CALLS}


def restrict_script():
    """As `restrict_extraction`, for a process that runs another program, which has threads, but no sockets."""
    names = _numbers().keys() - {*_OF_A_SERVER, 'socket', 'connect'} | {'prctl', 'prlimit64', *_OF_A_SCRIPT}
    _install(names, _CONDITIONS)


def _numbers():
    """Returns the number of each call on this machine; nothing if it is of another architecture."""
    # A process of 32 bits has other numbers.
    if os.uname().machine not in _ARCHITECTURES or sys.maxsize < 1 << 32:
        return {}
    column = 1 + list(_ARCHITECTURES).index(os.uname().machine)
    rows = [row.split() for row in _NUMBERS.split(',')]
    return {row[0]: int(row[column]) for row in rows if row[column] != '-'}


# Classic BPF (linux/bpf_common.h): load a word of seccomp_data, compare, jump, return.
_LOAD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _FAIL, _ASK = 0x7FFF0000, 0x00050000, 0x7FC00000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16


def _install(names, conditions, asked=()):
    """Returns the descriptor of who is asked about the calls `asked`; 0 without, None if there are no numbers."""
    numbers = _numbers()
    if not numbers:
        return None
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURES[os.uname().machine]),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
    ]
    for name in sorted(names, key=numbers.get):
        verdict = (_RETURN, 0, 0, _ASK if name in asked else _ALLOW)
        block = _check(conditions[name], verdict) if name in conditions else [verdict]
        program += [(_JUMP_IF_EQUAL, 0, len(block), numbers[name]), *block]
    # As if the kernel were older: libraries then use the calls that they used before.
    program.append((_RETURN, 0, 0, _FAIL | errno.ENOSYS))
    code = ctypes.create_string_buffer(b''.join(struct.pack('=HBBI', *statement) for statement in program))
    header = struct.pack('@HP', len(program), ctypes.addressof(code))
    return linux.call(numbers['seccomp'], _SET_MODE_FILTER, _NEW_LISTENER if asked else 0, header)


def _check(alternatives, verdict):
    """Returns statements that lead to `verdict` if all conditions of one alternative hold, else to a failure."""
    block = []
    for conditions in alternatives:
        rest = 3 * len(conditions)
        for argument, mask, value in conditions:
            rest -= 3
            offset = _ARGUMENTS_OFFSET + 8 * (argument % _POINTER) + (4 if argument >= _POINTER else 0)
            block += [(_LOAD, 0, 0, offset), (_AND, 0, 0, mask), (_JUMP_IF_EQUAL, 0, rest + 1, value)]
        block.append(verdict)
    return [*block, (_RETURN, 0, 0, _FAIL | errno.EPERM)]
