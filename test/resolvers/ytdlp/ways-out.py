"""
An extractor with ways out of its process, by system calls that Python knows nothing of. What precedes this file sets HOST,
PORT, FOLDER (which has the files `secret` and `keys.sock`), ABSTRACT (the name of a socket), VICTIM (a process of the same
user) and NODE. A way is out if its call succeeds, or fails for another reason than that it is not allowed.
"""

import ctypes
import errno
import json
import os
import platform
import socket
import struct
import time
import urllib.parse

import _posixsubprocess

from .common import InfoExtractor

__all__ = ['WaysOutIE']

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALL = LIBC.syscall
SYSCALL.restype = ctypes.c_long
FORK_EXEC = _posixsubprocess.fork_exec
COLUMN = {'x86_64': 1, 'aarch64': 2}[platform.machine()]
NUMBERS = {row.split()[0]: int(row.split()[COLUMN]) for row in """
openat 257 56, execve 59 221, execveat 322 281, clone 56 220, socket 41 198, connect 42 203, sendto 44 206, bind 49 200,
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, pidfd_open 434 434, pidfd_send_signal 424 424,
kill 62 129, tgkill 234 131, rt_sigqueueinfo 129 138, fcntl 72 25, setpgid 109 154, setsid 112 157, prctl 157 167,
io_uring_setup 425 425, memfd_create 319 279, memfd_secret 447 447, mmap 9 222, munmap 11 215, shmget 29 194, inotify_init1 294 26,
fanotify_init 300 262, symlinkat 266 36, linkat 265 37, mknodat 259 33, fchmodat 268 53, fchownat 260 54,
renameat2 316 276, unlinkat 263 35, truncate 76 45, utimensat 280 88, setxattr 188 5, mkdirat 258 34, userfaultfd 323 282,
personality 135 92, unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, open_tree 428 428, fsopen 430 430,
bpf 321 280, perf_event_open 298 241, add_key 248 217, keyctl 250 219, kexec_load 246 104, init_module 175 105,
reboot 169 142, sethostname 170 161, swapon 167 224, syslog 103 116, open_by_handle_at 304 265, prlimit64 302 261,
setpriority 141 140, sched_setaffinity 203 122, capset 126 91, setresuid 117 147, chroot 161 51, pivot_root 155 41,
quotactl 179 60, acct 163 89, mq_open 240 180, msgget 68 186, semget 64 190, seccomp 317 277, ioctl 16 29,
clock_settime 227 112, move_pages 279 239, kcmp 312 272, process_mrelease 448 448, clone3 435 435, socketpair 53 199,
sendmsg 46 211, getpeername 52 205, setsockopt 54 208, openat2 437 437, timer_create 222 107, ioprio_set 251 30, close 3 57, read 0 63, exit 60 93
""".split(',')}
DENIED = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOMEM, errno.EAGAIN}
AT, CREATE, READ_WRITE = -100, 0o1101, 0o2
UNIX, INET, INET6, STREAM, DATAGRAM = 1, 2, 10, 1, 2
GiB = 1 << 30
INFINITE = struct.pack('=QQ', 1 << 63, 1 << 63)


class Denied(Exception):
    pass


def call(name, *arguments, number=None):
    values = [value if isinstance(value, bytes) or value is None else ctypes.c_long(value) for value in arguments]
    result = SYSCALL(ctypes.c_long(NUMBERS[name] if number is None else number), *values)
    if result < 0 and ctypes.get_errno() in DENIED:
        raise Denied(errno.errorcode[ctypes.get_errno()])
    return result


def path(name):
    return os.fsencode(f'{FOLDER}/{name}')


def open_file(name, flags=0):
    return call('openat', AT, name, flags, 0o600)


def inet(host, port):
    return struct.pack('=H', INET) + struct.pack('>H', port) + socket.inet_aton(host) + bytes(8)


def unix(name):
    return struct.pack('=H', UNIX) + name + b'\0' * (not name.startswith(b'\0'))


def connect(family, kind, protocol, address):
    """Connects; a connection to the proxy is none to `address`."""
    descriptor = call('socket', family, kind, protocol)
    call('connect', descriptor, address, len(address))
    peer, length = ctypes.create_string_buffer(16), ctypes.create_string_buffer(struct.pack('=i', 16))
    call('getpeername', descriptor, ctypes.addressof(peer), ctypes.addressof(length))
    if family == INET and peer.raw == inet('127.0.0.1', PROXY):
        raise Denied


def send(family, kind, address, flags=0):
    return call('sendto', call('socket', family, kind, 0), b'x', 1, flags, address, len(address))


def send_by_pair():
    pair = ctypes.create_string_buffer(8)
    call('socketpair', UNIX, DATAGRAM, 0, ctypes.addressof(pair))
    return call('sendto', struct.unpack('=ii', pair.raw)[0], b'x', 1, 0, unix(path('keys.sock')), len(unix(path('keys.sock'))))


def fork():
    """Starts a process that would outlive the extraction for a while."""
    if call('clone', 17, 0, 0, 0, 0) == 0:
        SYSCALL(ctypes.c_long(NUMBERS['setsid']))
        time.sleep(3)
        SYSCALL(ctypes.c_long(NUMBERS['exit']), ctypes.c_long(0))


def fork_many():
    for _ in range(100):
        fork()


def run(*command, call_name='execve'):
    """Becomes another program, which answers in place of the extraction."""
    answer = b"echo '{\"info\":{\"title\":\"[\\\\\"exec\\\\\"]\"}}' >&3"
    arguments = [ctypes.c_char_p(each) for each in (*command, b'-c', answer)]
    vector = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    return call('execve', command[0], ctypes.addressof(vector), 0)


def fork_exec():
    pipe = os.pipe()
    pid = FORK_EXEC(
        [b'/bin/sh', b'-c', b'sleep 3'], [b'/bin/sh'], True, (), None, None, -1, -1, -1, -1, -1, -1, *pipe, False, False, 0,
        None, None, None, -1, None, False)
    if pid < 0 or os.read(pipe[0], 100):
        raise Denied


def read_memory(name):
    buffer = ctypes.create_string_buffer(8)
    local = ctypes.create_string_buffer(struct.pack('=QQ', ctypes.addressof(buffer), 8))
    return call(name, VICTIM, ctypes.addressof(local), 1, ctypes.addressof(local), 1, 0)


def many_threads():
    import _thread
    try:
        for _ in range(1_000):
            _thread.start_new_thread(time.sleep, (2,))
    except RuntimeError as error:
        raise Denied from error


def map_memory(size, flags):
    return call('mmap', 0, size, 3, flags, -1, 0)


def use_memory():
    """Takes 2 GiB in small pieces."""
    places = []
    try:
        for _ in range(2 * 1024):
            places.append(map_memory(1 << 20, 0x22))
    finally:
        for place in places:
            call('munmap', place, 1 << 20)


def send_signals_of_a_socket():
    descriptor = call('socket', INET, STREAM, 0)
    call('fcntl', descriptor, 8, VICTIM)


def find_keys_socket():
    """Uses a connection that the process has."""
    for descriptor in range(5, 1_024):
        if call('read', descriptor, bytes(8), 0) >= 0:
            return
    raise Denied


def join_group():
    """Has the kernel send a packet to a group, whose address may say anything."""
    descriptor = call('socket', INET, STREAM, 0)
    group = struct.pack('=II', 1, 0) + inet('239.1.2.3', 0) + bytes(112)
    if call('setsockopt', descriptor, 0, 42, group, len(group)) < 0:
        raise OSError(ctypes.get_errno(), 'setsockopt')


def take_connections():
    """Takes connections to the proxy from those that others need, too, without a word to it."""
    descriptors = []
    try:
        for _ in range(200):
            descriptors.append(call('socket', INET, STREAM, 0))
            if descriptors[-1] < 0:
                raise Denied
            call('connect', descriptors[-1], inet('127.0.0.1', PROXY), 16)
    finally:
        for descriptor in descriptors:
            call('close', descriptor)


def keep_descriptors_on_the_way():
    """Sends descriptors that nobody receives: of those, a user has a number, and others' extractions send some."""
    pair = ctypes.create_string_buffer(8)
    call('socketpair', UNIX, STREAM, 0, ctypes.addressof(pair))
    near, far = struct.unpack('=ii', pair.raw)
    with socket.socket(fileno=near) as sender:
        for _ in range(5):
            socket.send_fds(sender, [b'x'], [0] * 250)


WAYS = {
    # Reading
    'read': lambda: open_file(path('secret')),
    'read by openat2': lambda: call('openat2', AT, path('secret'), struct.pack('=QQQ', 0, 0, 0), 24),
    'read a folder': lambda: open_file(os.fsencode(FOLDER), 0o200000 if COLUMN == 1 else 0o40000),
    'read by a handle': lambda: call('open_by_handle_at', AT, bytes(64), 0),
    'read accounts': lambda: open_file(b'/etc/passwd'),
    'read environ': lambda: open_file(b'/proc/%d/environ' % VICTIM),
    'read environ of the server': lambda: open_file(b'/proc/%d/environ' % os.getppid()),
    'read mem': lambda: open_file(b'/proc/%d/mem' % VICTIM),
    'read mem of the server': lambda: open_file(b'/proc/%d/mem' % os.getppid()),
    'read sockets': lambda: open_file(b'/proc/net/unix'),
    'read devices': lambda: open_file(b'/dev/full'),
    'read own mem': lambda: open_file(b'/proc/self/mem', READ_WRITE),
    'descriptors': find_keys_socket,
    # Writing
    'write': lambda: open_file(path('written'), CREATE),
    'write in /tmp': lambda: open_file(b'/tmp/written-by-yt-dlp', CREATE),
    'write over': lambda: open_file(path('secret'), READ_WRITE),
    'write shared memory': lambda: open_file(b'/dev/shm/written-by-yt-dlp', CREATE),
    'write the null device': lambda: open_file(b'/dev/zero', READ_WRITE),
    'truncate': lambda: call('truncate', path('secret'), 0),
    'mkdir': lambda: call('mkdirat', AT, path('folder'), 0o700),
    'symlink': lambda: call('symlinkat', path('secret'), AT, path('symlink')),
    'hard link': lambda: call('linkat', AT, path('secret'), AT, path('link'), 0),
    'mknod': lambda: call('mknodat', AT, path('pipe'), 0o10600, 0),
    'device': lambda: call('mknodat', AT, path('device'), 0o20600, 0x101),
    'chmod': lambda: call('fchmodat', AT, path('secret'), 0o644),
    'chown': lambda: call('fchownat', AT, path('secret'), os.getuid(), os.getgid(), 0),
    'rename': lambda: call('renameat2', AT, path('other'), AT, path('renamed'), 0),
    'unlink': lambda: call('unlinkat', AT, path('other'), 0),
    'times': lambda: call('utimensat', AT, path('secret'), None, 0),
    'attributes': lambda: call('setxattr', path('secret'), b'user.a', b'b', 1, 0),
    # Network
    'keys.sock': lambda: connect(UNIX, STREAM, 0, unix(path('keys.sock'))),
    'keys.sock by a pair': send_by_pair,
    'abstract socket': lambda: connect(UNIX, STREAM, 0, unix(b'\0' + os.fsencode(ABSTRACT))),
    'TCP': lambda: connect(INET, STREAM, 0, inet(HOST, PORT)),
    'TCP to the port of others': lambda: connect(INET, STREAM, 0, inet('127.0.0.1', 22)),
    "TCP to the proxy's port elsewhere": lambda: connect(INET, STREAM, 0, inet(HOST, PROXY)),
    'TCP fast open': lambda: send(INET, STREAM, inet(HOST, PORT), 0x20000000),
    'MPTCP': lambda: connect(INET, STREAM, 262, inet(HOST, PORT)),
    'SCTP': lambda: call('socket', INET, STREAM, 132),
    'TCP of IPv6': lambda: call('socket', INET6, STREAM, 0),
    'UDP': lambda: send(INET, DATAGRAM, inet(HOST, PORT)),
    'DNS': lambda: send(INET, DATAGRAM, inet('127.0.0.53', 53)),
    'UDP of IPv6': lambda: call('socket', INET6, DATAGRAM, 0),
    'raw': lambda: call('socket', INET, 3, 1),
    'packets': lambda: call('socket', 17, 3, 0),
    'netlink': lambda: call('socket', 16, 3, 0),
    'vsock': lambda: call('socket', 40, STREAM, 0),
    'crypto API': lambda: call('socket', 38, 5, 0),
    'Bluetooth': lambda: call('socket', 31, 3, 1),
    'listen': lambda: call('bind', call('socket', INET, STREAM, 0), inet('127.0.0.1', 0), 16),
    'multicast group': join_group,
    'many connections to the proxy': take_connections,
    # Other processes
    'ptrace': lambda: call('ptrace', 0x4206, VICTIM, 0, 0),
    'ptrace of the server': lambda: call('ptrace', 0x4206, os.getppid(), 0, 0),
    'process_vm_readv': lambda: read_memory('process_vm_readv'),
    'process_vm_writev': lambda: read_memory('process_vm_writev'),
    'pidfd': lambda: call('pidfd_open', VICTIM, 0),
    'signal': lambda: call('kill', VICTIM, 18),
    'signal to the server': lambda: call('kill', os.getppid(), 18),
    'signal to all': lambda: call('kill', -1, 0),
    'signal to a thread': lambda: call('tgkill', VICTIM, VICTIM, 18),
    'signal with a value': lambda: call('rt_sigqueueinfo', VICTIM, 18, struct.pack('=iii', 18, 0, -1) + bytes(116)),
    'signal by a pidfd': lambda: call('pidfd_send_signal', 1, 18, 0, 0),
    'signals of a socket': send_signals_of_a_socket,
    'kcmp': lambda: call('kcmp', VICTIM, VICTIM, 0, 0, 0),
    'move_pages': lambda: call('move_pages', VICTIM, 0, 0, 0, 0, 0),
    'mrelease': lambda: call('process_mrelease', 1, 0),
    'priority': lambda: call('setpriority', 0, VICTIM, 19),
    'I/O priority': lambda: call('ioprio_set', 1, VICTIM, 0x4007),
    'processors': lambda: call('sched_setaffinity', VICTIM, 8, struct.pack('=Q', 1)),
    'limits of others': lambda: call('prlimit64', VICTIM, 7, INFINITE, 0),
    # Staying
    'outlive the server': lambda: call('prctl', 1, 0, 0, 0, 0),
    'dumpable': lambda: call('prctl', 4, 1, 0, 0, 0),
    'subreaper': lambda: call('prctl', 36, 1, 0, 0, 0),
    'session': lambda: call('setsid'),
    'group': lambda: call('setpgid', 0, os.getppid()),
    'limits': lambda: call('prlimit64', 0, 0, INFINITE, 0),
    'timer': lambda: call('timer_create', 0, 0, bytes(8)),
    # Memory
    'shared memory': lambda: map_memory(3 * GiB, 0x4021),
    'stack': lambda: map_memory(3 * GiB, 0x4122),
    'private memory': lambda: map_memory(3 * GiB, 0x4022),
    'much memory': use_memory,
    'page tables': lambda: call('mmap', 0, 1 << 45, 1, 0x4022, -1, 0),
    'System V memory': lambda: call('shmget', 0, 1 << 20, 0o1600),
    'System V messages': lambda: call('msgget', 0, 0o1600),
    'System V semaphores': lambda: call('semget', 0, 1, 0o1600),
    'message queue': lambda: call('mq_open', b'way-out', 0o102, 0o600, 0),
    'memfd': lambda: call('memfd_create', b'a', 0),
    'memfd_secret': lambda: call('memfd_secret', 0),
    'execute a memfd': lambda: call('execveat', call('memfd_create', b'a', 0), b'', 0, 0, 0x1000),
    'descriptors on the way': keep_descriptors_on_the_way,
    # The kernel
    'io_uring': lambda: call('io_uring_setup', 1, bytes(120)),
    'userfaultfd': lambda: call('userfaultfd', 1),
    'personality': lambda: call('personality', 0x40000),
    'user namespace': lambda: call('unshare', 0x10000000),
    'network namespace': lambda: call('unshare', 0x40000000),
    'setns': lambda: call('setns', 1, 0),
    'mount': lambda: call('mount', b'none', path(''), b'tmpfs', 0, 0),
    'umount': lambda: call('umount2', path(''), 2),
    'open_tree': lambda: call('open_tree', AT, path(''), 1),
    'fsopen': lambda: call('fsopen', b'tmpfs', 0),
    'chroot': lambda: call('chroot', path('')),
    'pivot_root': lambda: call('pivot_root', path(''), path('')),
    'bpf': lambda: call('bpf', 0, bytes(72), 72),
    'perf': lambda: call('perf_event_open', bytes(128), 0, -1, -1, 0),
    'add_key': lambda: call('add_key', b'user', b'a', b'b', 1, -3),
    'keyctl': lambda: call('keyctl', 0, -3, 1),
    'kexec': lambda: call('kexec_load', 0, 99, 0, 0),
    'module': lambda: call('init_module', bytes(8), 8, b''),
    'reboot': lambda: call('reboot', 0, 0, 0, 0),
    'host name': lambda: call('sethostname', b'', -1),
    'swap': lambda: call('swapon', path('secret'), 0),
    'log of the kernel': lambda: call('syslog', 3, bytes(8), 8),
    'quota': lambda: call('quotactl', 0x80000200, 0, 0, 0),
    'accounting': lambda: call('acct', path('secret')),
    'clock': lambda: call('clock_settime', 0, struct.pack('=qq', -1, -1)),
    'capabilities': lambda: call('capset', struct.pack('=Ii', 0x20080522, 0), b'\xff' * 24),
    'user': lambda: call('setresuid', 1, 1, 1),
    'inotify': lambda: call('inotify_init1', 0),
    'fanotify': lambda: call('fanotify_init', 0, 0),
    'terminal': lambda: call('ioctl', 0, 0x5412, b'x'),
    'x32': lambda: call('kill', VICTIM, 0, number=NUMBERS['kill'] | 0x40000000),
    'unknown call': lambda: call('kill', number=9_999),
    # Programs and processes
    'clone3': lambda: call('clone3', struct.pack('=QQQQQ', 0, 0, 0, 0, 17) + bytes(48), 88) or SYSCALL(NUMBERS['exit'], 0),
    'process in a namespace': lambda: call('clone', 0x10000000 | 17, 0, 0, 0, 0) or SYSCALL(NUMBERS['exit'], 0),
    'threads': many_threads,
    'fork': fork,
    'fork bomb': fork_many,
    'fork_exec': fork_exec,
    'exec': lambda: run(b'/bin/sh'),
    'exec by the loader': lambda: run(b'/lib64/ld-linux-x86-64.so.2' if COLUMN == 1 else b'/lib/ld-linux-aarch64.so.1', b'/bin/sh'),
}


class WaysOutIE(InfoExtractor):
    _VALID_URL = r'https?://ways-out\.example/(?P<id>.+)'

    def _real_extract(self, url):
        global PROXY
        PROXY = urllib.parse.urlsplit(self.get_param('proxy')).port
        first, last = map(int, self._match_id(url).split('-'))
        out = []
        for name, way in list(WAYS.items())[first:last]:
            try:
                way()
                out.append(name)
            except Denied:
                pass
            except OSError as error:
                if error.errno not in DENIED:
                    out.append(name)
        return {'id': 'x', 'title': json.dumps(out), 'description': str(len(WAYS)), 'formats': []}
