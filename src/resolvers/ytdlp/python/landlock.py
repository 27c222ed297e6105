"""Landlock (landlock(7)): what a process and those that it starts may do with files, TCP and signals."""

import os
import struct

import linux

# The numbers of these system calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
# How many rights for files each version has: up to make_sym, then refer, truncate, ioctl_dev.
_FILE_RIGHTS = (0, 13, 14, 15, 15, 16)
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
_FIRST_WITH_TCP, _FIRST_WITH_SCOPES = 4, 6


def version():
    """Returns the version of the kernel's Landlock; 0 if it has none."""
    try:
        return linux.call(_CREATE_RULESET, None, 0, _VERSION_FLAG) if linux.is_linux() else 0
    except OSError:
        return 0


def restrict(readable=(), executable=(), port=None):
    """
    Restricts this process for good, as far as the kernel can: it may read what is below the paths `readable`, run the files
    `executable`, connect to TCP port `port`, and send signals to processes that are restricted with it.
    """
    ruleset = _create()
    try:
        for path in readable:
            _allow_path(ruleset, path, _READ_FILE | _READ_DIR)
        for path in executable:
            _allow_path(ruleset, path, _READ_FILE | _EXECUTE)
        if port is not None and version() >= _FIRST_WITH_TCP:
            linux.call(_ADD_RULE, ruleset, _NET_PORT, struct.pack('=QQ', _CONNECT_TCP, port), 0)
        linux.call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _create():
    """Creates a ruleset that forbids all that this version knows."""
    files = (1 << _FILE_RIGHTS[min(version(), len(_FILE_RIGHTS) - 1)]) - 1
    handled = struct.pack('=Q', files)
    if version() >= _FIRST_WITH_TCP:
        handled += struct.pack('=Q', _BIND_TCP | _CONNECT_TCP)
    if version() >= _FIRST_WITH_SCOPES:
        handled += struct.pack('=Q', _ABSTRACT_SOCKETS | _SIGNALS)
    return linux.call(_CREATE_RULESET, handled, len(handled), 0)


def _allow_path(ruleset, path, rights):
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # There is none.
    try:
        allowed = rights if os.path.isdir(path) else rights & ~_READ_DIR
        linux.call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack('=Qi', allowed, descriptor), 0)
    finally:
        os.close(descriptor)
