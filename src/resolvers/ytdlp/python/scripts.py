"""
Node for sites' scripts. An extraction may not start processes: it asks the server for one, over a socket on which it sends
the command with its standard input, output and error output. Responses are numbers: the process id, then how it ended.
"""

import _posixsubprocess
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time

import sandbox

_MAX_SCRIPTS = 16
_SEND_LIMIT_S, _SEND_DELAY_S = 5, 0.01
_NUMBER = struct.Struct('=i')


class ScriptStarter:
    """The server's end of an extraction's socket; starts one script after the other."""

    def __init__(self, near, node, confine):
        self.socket = near
        self._node = node
        self._confine = confine
        self._started = 0
        self._process = None

    def receive(self, message, descriptors):
        """
        Starts the script that is asked for, and returns the descriptor that is readable when it has ended. If one runs,
        ends that instead. Raises ValueError if the request is none, or one too many.
        """
        if self._process is not None:
            if descriptors:
                raise ValueError
            self.kill()
            return None
        command = json.loads(message)
        if len(descriptors) != 3 or self._started == _MAX_SCRIPTS or not sandbox.is_harmless(command, self._node):
            raise ValueError
        self._started += 1
        return self._start(command, descriptors)

    def _start(self, command, descriptors):
        source, target = os.pipe()
        stdin, stdout, stderr = descriptors
        # Node does not start if it may not read the configuration of OpenSSL that there is.
        env = {'OPENSSL_CONF': os.devnull}
        try:
            self._process = subprocess.Popen(
                command, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[target], env=env, preexec_fn=self._confine)
        except (OSError, subprocess.SubprocessError):
            os.close(source)
            self._respond(-errno.EACCES)
            return None
        finally:
            os.close(target)
        self._respond(self._process.pid)
        return source

    def kill(self):
        """Ends the script, if one runs."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)

    def collect(self):
        """Tells how the script has ended. Its pipe has: what is left of it is ended before it is waited for."""
        self.kill()
        _, status = os.waitpid(self._process.pid, 0)
        self._process.returncode = status
        self._process = None
        self._respond(status)

    def _respond(self, number):
        try:
            self.socket.send(_NUMBER.pack(number), socket.MSG_DONTWAIT)
        except OSError:
            pass  # The extraction has ended, or does not read.


def send_descriptors(server, message, descriptors):
    """
    Sends descriptors with a message. The kernel limits how many of one user's processes are on their way: while others have
    sent too many, this waits.
    """
    end = time.monotonic() + _SEND_LIMIT_S
    while True:
        try:
            return socket.send_fds(server, [message], descriptors)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS or time.monotonic() > end:
                raise
            time.sleep(_SEND_DELAY_S)


def ask_for_scripts(server):
    """Has `subprocess` start processes by asking at the socket `server`."""

    def fork_exec(arguments, executables, close_fds, kept, cwd, env, stdin, _1, _2, stdout, _3, stderr, *_):
        descriptors = [0 if each == -1 else each for each in (stdin, stdout, stderr)]
        send_descriptors(server, json.dumps(list(map(os.fsdecode, arguments))).encode(), descriptors)
        number = receive()
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return number

    def receive():
        data = server.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(data) < _NUMBER.size:
            raise ConnectionResetError
        return _NUMBER.unpack(data)[0]

    def try_wait(process, flags):
        if flags & os.WNOHANG and not select.select([server], [], [], 0)[0]:
            return 0, 0
        return process.pid, receive()

    def poll(process, *_, **__):
        if process.returncode is None:
            pid, status = try_wait(process, os.WNOHANG)
            if pid:
                process._handle_exitstatus(status)
        return process.returncode

    def send_signal(process, _):
        if poll(process) is None:
            server.send(b' ')

    # These are the same in all versions of Python that yt-dlp runs on. Since 3.13, posix_spawn(3) would come first.
    subprocess._USE_POSIX_SPAWN = False
    subprocess._fork_exec = _posixsubprocess.fork_exec = fork_exec
    subprocess.Popen._try_wait = try_wait
    subprocess.Popen._internal_poll = poll
    subprocess.Popen.send_signal = send_signal
