"""
TCP connections of an extraction. Where the kernel can, it asks the server about each connect(2) of an extraction
(seccomp_unotify(2)); the server ignores the address, connects to the proxy itself, and puts that connection in its place.
"""

import errno
import fcntl
import os
import select
import socket
import struct

_RECEIVE, _SEND, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
REQUESTS = (_RECEIVE, _SEND, _ADD_DESCRIPTOR)
_NOTIFICATION = struct.Struct('=Q24xQ40x')  # Its id, and the first argument of the call: a descriptor.
_RESPONSE = struct.Struct('=QqiI')
_ADDED = struct.Struct('=QIIII')
_REPLACE = 1
_FIRST_KERNEL = (5, 9)


def can_be_replaced():
    """Returns whether this kernel can put one connection in the place of another."""
    release = os.uname().release.split('.')
    return tuple(int(''.join(filter(str.isdigit, part)) or 0) for part in release[:2]) >= _FIRST_KERNEL


class Connector:
    """The server's end: `listener` is readable when the extraction connects."""

    def __init__(self, listener, port):
        self.listener = listener
        self._port = port

    def connect(self):
        """Answers one call. Returns False if there will be no more."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        if not any(events & select.POLLIN for _, events in poll.poll(0)):
            return False
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notification)
            number, descriptor = _NOTIFICATION.unpack(notification)
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(number, 0, -self._replace(number, descriptor), 0))
        except FileNotFoundError:
            pass  # The process has ended meanwhile.
        return True

    def _replace(self, number, descriptor):
        """Returns the number of the error, or 0."""
        try:
            with socket.create_connection(('127.0.0.1', self._port)) as connection:
                # As all are that have a time limit, which yt-dlp sets for each.
                connection.setblocking(False)
                added = _ADDED.pack(number, _REPLACE, connection.fileno(), descriptor & 0xFFFFFFFF, os.O_CLOEXEC)
                fcntl.ioctl(self.listener, _ADD_DESCRIPTOR, added)
                return 0
        except OSError as error:
            return error.errno or errno.ECONNREFUSED

    def close(self):
        os.close(self.listener)
