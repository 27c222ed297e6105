"""
Has yt-dlp in memory and forks a process for each extraction.

usage: python -I fork_server.py PATH_OF_YT_DLP, with a socket as file descriptor 3. Requests are lines of
JSON, responses are frames (see `_send`). It ends when the socket is closed, with everything it started.
"""

import gc
import importlib.util
import json
import os
import re
import selectors
import signal
import struct
import sys
import zipfile

_SOCKET = 3
_CHUNK = 64 * 1024
_FIND_LIMIT_S = 0.3


class _Refusal(Exception):
    """Ends the program with one line for the log."""


def main(script):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing of it reaches yt-dlp: `no_proxy` in it would lead past the proxy.
    os.environ.clear()
    os.environ['YTDLP_NO_PLUGINS'] = '1'
    os.environ['YTDLP_NO_LAZY_EXTRACTORS'] = '1'
    file, version = _locate(script)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.dont_write_bytecode = True
    import sandbox
    sys.dont_write_bytecode = False
    _send(b'H', 0, {'version': version, 'versionFile': file, 'landlock': sandbox.landlock_version()})
    extractors = _load_extractors()
    _send(b'R', 0, {'extractors': len(extractors)})
    _Server(extractors).run()


def _locate(script):
    """
    Puts yt-dlp on `sys.path`: the script itself if it is a zip archive, else what lies beside it, the
    Python's own packages, or its user's. Returns the file to watch and the version.
    """
    if zipfile.is_zipfile(script):
        sys.path.insert(0, script)
        with zipfile.ZipFile(script) as archive:
            return script, _version_in(archive.read('yt_dlp/version.py').decode())
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(script)))
    python = 'python{}.{}'.format(*sys.version_info)
    for folder in (f'{prefix}/lib', None, f'{prefix}/lib/{python}/site-packages'):
        if folder is not None:
            if not os.path.isfile(f'{folder}/yt_dlp/version.py'):
                continue
            sys.path.insert(0, folder)
        spec = importlib.util.find_spec('yt_dlp')
        if spec is not None and spec.origin is not None:
            file = os.path.join(os.path.dirname(spec.origin), 'version.py')
            with open(file, encoding='utf-8') as text:
                return file, _version_in(text.read())
    raise _Refusal(f'{sys.executable}, which {script} names, has no package yt_dlp')


def _version_in(text):
    match = re.search(r"^__version__ = '([\d.]+)'", text, re.MULTILINE)
    if match is None:
        raise _Refusal('yt_dlp/version.py states no version')
    return match[1]


def _load_extractors():
    """Returns yt-dlp's extractors but the generic one and those that do not work, ready to match URLs."""
    import yt_dlp.globals
    yt_dlp.globals.plugin_dirs.value = []
    from yt_dlp.extractor import gen_extractor_classes
    sys.dont_write_bytecode = True
    import extraction
    classes = [
        extractor for extractor in gen_extractor_classes()
        if extractor.ie_key() != 'Generic' and extractor.working()
    ]
    for extractor in classes:
        extractor.suitable('https://example.com/')
    extraction.warm_up()
    # Objects that no collection touches stay shared with the processes.
    gc.collect()
    gc.freeze()
    return classes


class _Child:
    """A process with one extraction; `pipe` is where its answer comes from."""

    def __init__(self, number, pid, pipe):
        self.number = number
        self.pid = pid
        self.pipe = pipe

    def kill(self):
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # It has no group yet, or has ended.


class _Server:
    def __init__(self, extractors):
        self._extractors = extractors
        self._children = {}
        self._selector = selectors.DefaultSelector()
        self._pid = os.getpid()

    def run(self):
        self._selector.register(_SOCKET, selectors.EVENT_READ)
        rest = b''
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.fd != _SOCKET:
                        self._forward(key.data)
                        continue
                    data = os.read(_SOCKET, _CHUNK)
                    if not data:
                        return
                    *lines, rest = (rest + data).split(b'\n')
                    for line in lines:
                        self._handle(json.loads(line))
        except (BrokenPipeError, ConnectionResetError):
            pass  # The service has ended.
        finally:
            for child in self._children.values():
                child.kill()

    def _handle(self, request):
        number = request['id']
        if request['do'] == 'find':
            _send(b'F', number, self._find(request['url']))
        elif request['do'] == 'extract':
            self._start(number, request)
        elif number in self._children:
            self._children[number].kill()

    def _find(self, url):
        """Returns the name of the first extractor that suits, as yt-dlp would choose it."""
        signal.signal(signal.SIGALRM, _raise_timeout)
        signal.setitimer(signal.ITIMER_REAL, _FIND_LIMIT_S)
        try:
            return {'name': next((each.IE_NAME for each in self._extractors if each.suitable(url)), None)}
        except TimeoutError:
            return {'failure': f'matching the URL took over {_FIND_LIMIT_S} s'}
        except Exception as error:
            return {'failure': f'matching the URL failed with {type(error).__name__}'}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _start(self, number, request):
        source, target = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run_child(self._pid, request, target)
        os.close(target)
        child = self._children[number] = _Child(number, pid, source)
        self._selector.register(source, selectors.EVENT_READ, child)
        _send(b'S', number, {'pid': pid})

    def _forward(self, child):
        data = os.read(child.pipe, _CHUNK)
        if data:
            _write_frame(b'D', child.number, data)
            return
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        # Before the process id is free for others; also ends what the process has left.
        child.kill()
        _, status = os.waitpid(child.pid, 0)
        del self._children[child.number]
        _send(b'E', child.number, {'signal': os.WTERMSIG(status) if os.WIFSIGNALED(status) else None})


def _raise_timeout(*_):
    raise TimeoutError


def _run_child(parent, request, target):
    """Extracts and ends the process, whatever happens."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.dup2(target, _SOCKET)
        os.closerange(_SOCKET + 1, 1_024)
        answer = memoryview(_answer(parent, request))
        while answer:
            answer = answer[os.write(_SOCKET, answer):]
    finally:
        os._exit(0)


def _answer(parent, request):
    import extraction
    import sandbox
    try:
        cookies = None
        if request['cookiesFile']:
            with open(request['cookiesFile'], encoding='utf-8') as file:
                cookies = file.read()
        sandbox.confine(parent, request['proxyPort'], request['node'], request['limits'])
    except Exception as error:
        return extraction.failure('SetUpError', f'{type(error).__name__}: {error}')
    return extraction.extract(request, cookies)


def _send(kind, number, value):
    _write_frame(kind, number, json.dumps(value).encode())


def _write_frame(kind, number, payload):
    """One byte for the kind, the number of the request and the payload's length as 32 bits, the payload."""
    frame = memoryview(struct.pack('>cII', kind, number, len(payload)) + payload)
    while frame:
        frame = frame[os.write(_SOCKET, frame):]


if __name__ == '__main__':
    try:
        main(sys.argv[1])
    except _Refusal as refusal:
        sys.exit(str(refusal))
