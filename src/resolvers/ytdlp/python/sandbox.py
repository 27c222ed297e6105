"""Limits of one extraction: its process reaches the proxy's port and nothing else, and writes no file."""

import ctypes
import os
import resource
import signal
import struct
import sys

_MiB = 1024 * 1024

# The numbers of these system calls are the same on every architecture (landlock(7)).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH, _RULE_NET_PORT = 1, 2
_NET_BIND, _NET_CONNECT = 1 << 0, 1 << 1
_FS_WRITE_FILE = 1 << 1
# write_file, remove_* and make_*; refer came with version 2, truncate with 3, ioctl_dev with 5.
_FS_CHANGES = _FS_WRITE_FILE | sum(1 << bit for bit in range(4, 13)) | 1 << 13 | 1 << 14 | 1 << 15
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38

try:
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long
except (OSError, AttributeError):
    _libc = None


def landlock_version():
    """Returns the version of the kernel's Landlock; 0 if it has none."""
    if _libc is None or not sys.platform.startswith('linux'):
        return 0
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))


def confine(parent, port, node, limits):
    """
    Confines this process, whose parent is `parent`, for good: TCP connections to 127.0.0.1:`port` only, no
    file written, no program started but `node`, without permissions. The kernel's part also holds for `node`.
    """
    _die_with(parent)
    _limit_resources(limits)
    if landlock_version() >= 4:
        _restrict_by_landlock(port)
    sys.addaudithook(_create_audit_hook(port, node))


def _die_with(parent):
    """Has the kernel kill this process when its parent ends, however that happens."""
    if _libc is not None and sys.platform.startswith('linux'):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _limit_resources(limits):
    resource.setrlimit(resource.RLIMIT_CPU, (limits['cpuS'], limits['cpuS'] + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not RLIMIT_AS: the Node that yt-dlp starts for some sites reserves far more than it uses.
    resource.setrlimit(resource.RLIMIT_DATA, (limits['memoryMiB'] * _MiB, limits['memoryMiB'] * _MiB))


def _restrict_by_landlock(port):
    version = landlock_version()
    changes = _FS_CHANGES if version >= 5 else _FS_CHANGES & ~(1 << 15)
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= 6 else 0
    handled = struct.pack('=QQ', changes, _NET_BIND | _NET_CONNECT) + (struct.pack('=Q', scopes) if scopes else b'')
    ruleset = _call(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    _call(_ADD_RULE, ruleset, _RULE_NET_PORT, struct.pack('=QQ', _NET_CONNECT, port), 0)
    null = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
    _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack('=Qi', _FS_WRITE_FILE, null), 0)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(null)
    os.close(ruleset)


def _call(number, *arguments):
    result = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f'system call {number}')
    return result


_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = frozenset((
    'socket.bind', 'socket.gethostbyname', 'socket.gethostbyaddr', 'socket.getnameinfo', 'socket.sendto',
    'os.exec', 'os.posix_spawn', 'os.spawn', 'os.system', 'os.fork', 'os.forkpty', 'pty.spawn',
    'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir', 'os.link', 'os.symlink', 'os.truncate', 'os.chmod', 'os.chown',
    'ctypes.dlopen', 'ctypes.dlsym', 'ctypes.call_function', 'ctypes.cdata',
))


def _create_audit_hook(port, node):
    """Returns a hook that stops what Python code does; events are listed in Python's "Audit events table"."""

    def hook(event, arguments):
        if event == 'open':
            path, _, flags = arguments
            # A number is a file that is open already: the pipes to Node.
            is_allowed = not flags & _WRITE_FLAGS or path == os.devnull or isinstance(path, int)
        elif event == 'socket.connect':
            is_allowed = arguments[1] == ('127.0.0.1', port)
        elif event == 'socket.getaddrinfo':
            is_allowed = arguments[0] in ('127.0.0.1', b'127.0.0.1')
        elif event == 'socket.sendmsg':
            is_allowed = arguments[1] is None
        elif event == 'subprocess.Popen':
            is_allowed = _is_harmless(*arguments[:2], node)
        else:
            is_allowed = event not in _FORBIDDEN
        if not is_allowed:
            raise PermissionError(f'the sandbox of yt-dlp forbids {event}')

    return hook


def _is_harmless(executable, command, node):
    """Whether a command is the Node that yt-dlp starts for a site's script: no files, programs or network."""
    command = list(map(os.fsdecode, command))
    if executable != node or command[:1] != [node]:
        return False
    options = [option for option in command[1:] if not option.startswith('--v8-flags=')]
    return options in (['--version'], ['--permission', '-'])
