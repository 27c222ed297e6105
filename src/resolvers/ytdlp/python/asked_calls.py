"""
System calls of an extraction about which the kernel asks the server, where it can (seccomp_unotify(2)). Whatever address
an extraction connects to, the server ignores it, connects to the proxy itself, and puts that connection in the place of
the other. Of threads it allows a number at a time, as each takes a share of the processors.
"""

import errno
import fcntl
import os
import select
import socket
import struct

_RECEIVE, _SEND, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
# Threads end by exit(2), processes by exit_group(2).
CALLS = ('connect', 'clone', 'exit')
REQUESTS = (_RECEIVE, _SEND, _ADD_DESCRIPTOR)
_NOTIFICATION = struct.Struct('=Q8xi12xQ40x')  # Its id, the number of the call, and its first argument.
_RESPONSE = struct.Struct('=QqiI')
_CONTINUE = 1
_ADDED = struct.Struct('=QIIII')
_REPLACE = 1
_FIRST_KERNEL = (5, 9)
_MAX_THREADS = 16
# Each costs the server time that others wait for; real extractions ask for hundreds.
_MAX_CALLS = 5_000


def can_be_replaced():
    """Returns whether this kernel can put one connection in the place of another."""
    release = os.uname().release.split('.')
    return tuple(int(''.join(filter(str.isdigit, part)) or 0) for part in release[:2]) >= _FIRST_KERNEL


class TooManyCalls(Exception):
    """An extraction asks without end."""


class AskedCalls:
    """The server's end: `listener` is readable when it is asked. `numbers` are those of the calls CALLS, by their names."""

    def __init__(self, listener, numbers, port):
        self.listener = listener
        self._names = {number: name for name, number in numbers.items()}
        self._port = port
        self._threads = 0
        self._calls = 0

    def answer(self):
        """Answers one call. Returns False if there will be no more. Raises TooManyCalls."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        if not any(events & select.POLLIN for _, events in poll.poll(0)):
            return False
        self._calls += 1
        if self._calls > _MAX_CALLS:
            raise TooManyCalls
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notification)
            number, call, argument = _NOTIFICATION.unpack(notification)
            error, flags = self._decide(self._names[call], number, argument)
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(number, 0, -error, flags))
        except FileNotFoundError:
            pass  # The process has ended meanwhile.
        return True

    def _decide(self, name, number, argument):
        """Returns the error of the call, and whether the kernel makes it."""
        if name == 'connect':
            return self._replace(number, argument)
        if name == 'clone' and self._threads == _MAX_THREADS:
            return errno.EAGAIN, 0
        self._threads += 1 if name == 'clone' else -1
        return 0, _CONTINUE

    def _replace(self, number, descriptor):
        """
        Puts a connection to the proxy in the place of the socket `descriptor`. It may not be established yet: other calls do not
        wait for that. Like every socket with a time limit, which yt-dlp sets for each, it does not block.
        """
        try:
            with socket.socket() as connection:
                connection.setblocking(False)
                error = connection.connect_ex(('127.0.0.1', self._port))
                added = _ADDED.pack(number, _REPLACE, connection.fileno(), descriptor & 0xFFFFFFFF, os.O_CLOEXEC)
                fcntl.ioctl(self.listener, _ADD_DESCRIPTOR, added)
                return error, 0
        except OSError as error:
            return error.errno or errno.ECONNREFUSED, 0

    def close(self):
        os.close(self.listener)
