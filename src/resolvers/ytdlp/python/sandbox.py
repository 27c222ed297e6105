"""
What the processes of yt-dlp may do. The kernel enforces it where it can, for Python code and native code alike: Landlock
for files and TCP, a filter of system calls for all else. Python's audit hooks are a second wall, for Python code only.
"""

import glob
import os
import re
import resource
import signal
import ssl
import sys

import landlock
import linux
import seccomp

_MiB = 1024 * 1024
# What Python takes of address space besides the memory that an extraction may use; what Node reserves without using it.
_PYTHON_MiB, _NODE_MiB = 512, 64 * 1024
# The service comes first, then yt-dlp, then downloads, which are nicer.
_NICENESS = 5
# No more than an extraction: these limits are those of what the server starts, too.
_SERVER_MiB = 1024

_LIBRARIES = (
    '/lib', '/lib64', '/usr/lib', '/usr/lib64', '/nix/store', '/gnu/store', '/etc/ld.so.cache', '/etc/ld.so.preload',
    '/dev/null', '/dev/urandom', '/etc/localtime', '/usr/share/zoneinfo', '/etc/mime.types',
)
# Not all of /etc/ssl: it has the keys of this machine, too.
_CERTIFICATES = (
    '/etc/ssl/certs', '/etc/ssl/cert.pem', '/etc/ssl/openssl.cnf', '/usr/share/ca-certificates',
    '/usr/local/share/ca-certificates', '/etc/ca-certificates', '/etc/pki/tls/certs', '/etc/pki/tls/cert.pem',
    '/etc/pki/tls/openssl.cnf', '/etc/pki/ca-trust/extracted', '/etc/crypto-policies',
)


class Sandbox:
    """
    Confines this process, whose parent is `parent`, to what is needed to load yt-dlp and to start extractions: TCP to
    127.0.0.1:`port` alone, what Python reads its modules and certificates from, no file written, no program but `node`.
    """

    max_files = 1_024
    # All extractions together have fewer connections than the proxy takes.
    max_files_of_an_extraction = 128

    def __init__(self, parent, port, node):
        self._port = port
        self._node = node
        self._readable = [*_LIBRARIES, *_CERTIFICATES, *_places_of_python()]
        self._executable = [node, *_loaders_of(node)] if node else []
        os.nice(_NICENESS)
        _yield_memory()
        for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, self.max_files)):
            _limit(limit, value)
        if linux.is_linux():
            _limit(resource.RLIMIT_DATA, _SERVER_MiB * _MiB)
            linux.give_up_privileges()
        linux.die_with(parent, signal.SIGKILL)
        self.landlock = landlock.version()
        if self.landlock:
            landlock.restrict(self._readable, self._executable, port)
        self.seccomp = linux.is_linux() and seccomp.restrict_server()
        # Whether each connection of an extraction is one to the proxy, whatever its address.
        self.proxied = self.seccomp and seccomp.can_ask()

    def confine_extraction(self, parent, limits):
        """
        Confines this process, a child of that one: it starts neither processes nor programs, and has limits. Returns the
        descriptor for `AskedCalls`; -1 if nobody is asked.
        """
        linux.die_with(parent, signal.SIGKILL)
        _limit_use(limits)
        _limit(resource.RLIMIT_NOFILE, self.max_files_of_an_extraction)
        if linux.is_linux():
            _limit(resource.RLIMIT_AS, (limits['memoryMiB'] + _PYTHON_MiB) * _MiB)
        if self.landlock:
            landlock.restrict(self._readable, port=None if self.proxied else self._port)
        listener = seccomp.restrict_extraction(self.proxied) if self.seccomp else -1
        sys.addaudithook(_create_audit_hook(self._port, self._node))
        return listener

    def confine_script(self, parent, limits):
        """Confines this process, which is about to become `node`: it has no network, and reads the system's libraries."""
        linux.die_with(parent, signal.SIGKILL)
        _limit_use(limits)
        if linux.is_linux():
            _limit(resource.RLIMIT_AS, _NODE_MiB * _MiB)
        if self.landlock:
            landlock.restrict(_LIBRARIES, self._executable)
        if self.seccomp:
            seccomp.restrict_script()


def _places_of_python():
    """Returns where Python finds modules and libraries, and certificates."""
    defaults = ssl.get_default_verify_paths()
    certificates = [defaults.openssl_cafile, defaults.openssl_capath]
    certificates += [f'{folder}/certifi/cacert.pem' for folder in sys.path]
    # Certificates may be links to elsewhere.
    certificates = [place for path in certificates for place in (path, os.path.realpath(path))]
    return [*sys.path, *(f'{prefix}/lib' for prefix in (sys.prefix, sys.base_prefix, sys.base_exec_prefix)), *certificates]


def _loaders_of(program):
    """Returns the program that loads the libraries of `program`, which the kernel runs with it."""
    with open(program, 'rb') as file:
        named = re.search(rb'\0(/[^\0]+/ld-[^\0]+)\0', file.read(4_096))
    return [os.fsdecode(named[1])] if named else glob.glob('/lib*/ld-*.so.*')


def _yield_memory():
    """Has the kernel end yt-dlp's processes, not the service, when memory is short."""
    try:
        with open('/proc/self/oom_score_adj', 'w') as file:
            file.write('1000')
    except OSError:
        pass  # Not Linux, or not permitted.


def _limit_use(limits):
    _limit(resource.RLIMIT_CPU, limits['cpuS'], limits['cpuS'] + 1)
    _limit(resource.RLIMIT_DATA, limits['memoryMiB'] * _MiB)


def _limit(kind, soft, hard=None):
    _, most = resource.getrlimit(kind)
    values = [soft, soft if hard is None else hard]
    resource.setrlimit(kind, tuple(value if most == resource.RLIM_INFINITY else min(value, most) for value in values))


_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = frozenset((
    'socket.bind', 'socket.gethostbyname', 'socket.gethostbyaddr', 'socket.getnameinfo', 'socket.sendto',
    'os.exec', 'os.posix_spawn', 'os.spawn', 'os.system', 'os.fork', 'os.forkpty', 'pty.spawn', 'os.kill', 'os.killpg',
    'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir', 'os.link', 'os.symlink', 'os.truncate', 'os.chmod', 'os.chown',
    'ctypes.dlopen', 'ctypes.dlsym', 'ctypes.call_function', 'ctypes.cdata',
))


def _create_audit_hook(port, node):
    """Returns a hook that stops what Python code does; events are listed in Python's "Audit events table"."""

    def hook(event, arguments):
        if event == 'open':
            path, _, flags = arguments
            # A number is a file that is open already: the pipes to Node.
            is_allowed = not flags & _WRITE_FLAGS or isinstance(path, int)
        elif event == 'socket.connect':
            is_allowed = arguments[1] == ('127.0.0.1', port)
        elif event == 'socket.getaddrinfo':
            is_allowed = arguments[0] in ('127.0.0.1', b'127.0.0.1')
        elif event == 'socket.sendmsg':
            is_allowed = arguments[1] is None
        elif event == 'subprocess.Popen':
            is_allowed = arguments[0] == node and is_harmless(arguments[1], node)
        else:
            is_allowed = event not in _FORBIDDEN
        if not is_allowed:
            raise PermissionError(f'the sandbox of yt-dlp forbids {event}')

    return hook


def is_harmless(command, node):
    """Returns whether a command is the Node that yt-dlp starts for a site's script: no files, programs or network."""
    command = list(map(os.fsdecode, command))
    if command[:1] != [node]:
        return False
    options = [option for option in command[1:] if not option.startswith('--v8-flags=')]
    return options in (['--version'], ['--permission', '-'])
