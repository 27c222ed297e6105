"""Calls of the Linux kernel that Python has no function for."""

import ctypes
import os
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
# The number of capset(2); only root has capabilities to give up.
_CAPSET = {'x86_64': 126, 'aarch64': 91}
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_READ_SEARCH = 1 << 2

try:
    _libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith('linux') else None
except OSError:
    _libc = None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long


def is_linux():
    """Returns whether this is Linux, whose system calls can be made."""
    return _libc is not None


def call(number, *arguments):
    """Makes a system call; raises OSError if it fails."""
    result = _libc.syscall(ctypes.c_long(number), *map(_as_argument, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f'system call {number}: {os.strerror(ctypes.get_errno())}')
    return result


def prctl(option, *arguments):
    """Calls prctl(2); raises OSError if it fails."""
    padded = [*map(_as_argument, arguments), *[ctypes.c_ulong(0)] * (4 - len(arguments))]
    if _libc.prctl(option, *padded) < 0:
        raise OSError(ctypes.get_errno(), f'prctl {option}: {os.strerror(ctypes.get_errno())}')


def _as_argument(value):
    return value if value is None or isinstance(value, (bytes, ctypes.Array)) else ctypes.c_ulong(value)


def die_with(parent, signal):
    """Has the kernel send `signal` to this process when `parent` ends, however that happens."""
    if is_linux():
        prctl(_PR_SET_PDEATHSIG, signal)
    if os.getppid() != parent:
        os._exit(1)


def give_up_privileges():
    """Gives up for good what root, or a program with more rights, could do; /proc hides this process from others."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_DUMPABLE, 0)
    if os.geteuid() != 0 or os.uname().machine not in _CAPSET:
        return
    # Root reads files of other users by a capability, as it does where yt-dlp is installed for one of them.
    header = struct.pack('=Ii', _CAPABILITY_VERSION_3, 0)
    capabilities = struct.pack('=6I', _CAP_DAC_READ_SEARCH, _CAP_DAC_READ_SEARCH, 0, 0, 0, 0)
    try:
        call(_CAPSET[os.uname().machine], header, capabilities)
    except PermissionError:
        # It does not have that one.
        call(_CAPSET[os.uname().machine], header, bytes(24))
