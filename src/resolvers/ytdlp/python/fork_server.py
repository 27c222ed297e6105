"""
Has yt-dlp in memory and forks a process for each extraction.

usage: python -I fork_server.py PATH_OF_YT_DLP SETTINGS, with a socket as file descriptor 3. Settings are JSON: the process
id of the service, the port of its proxy, the path of the Node for sites' scripts. Requests are lines of JSON, responses are
frames (see `_send`). It ends when the socket is closed, with everything it started.
"""

import compileall
import fcntl
import gc
import importlib.util
import json
import os
import re
import selectors
import signal
import socket
import struct
import sys
import zipfile

_SOCKET = 3
# Of an extraction, besides `_SOCKET` for its result: it asks there for what it may not do itself.
_REQUESTS_SOCKET = 4
_MAX_REQUEST = 4_096
_LISTENER = b'listener'
_CHUNK = 64 * 1024
# Processor time.
_FIND_LIMIT_S = 0.3


class _Refusal(Exception):
    """Ends the program with one line for the log."""


def main(script, settings):
    # A terminal sends them to all its processes; the service ends this one when it stops.
    for name in (signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    # Nothing of it reaches yt-dlp: `no_proxy` in it would lead past the proxy.
    os.environ.clear()
    os.environ['YTDLP_NO_PLUGINS'] = '1'
    os.environ['YTDLP_NO_LAZY_EXTRACTORS'] = '1'
    file, version = _locate(script)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.dont_write_bytecode = True
    compiling = _start_compiling(os.path.dirname(file))
    from sandbox import Sandbox
    sandbox = Sandbox(settings['service'], settings['proxyPort'], settings['node'])
    kernel = {'landlock': sandbox.landlock, 'seccomp': sandbox.seccomp, 'proxied': sandbox.proxied}
    _send(b'H', 0, {'version': version, 'versionFile': file, **kernel})
    if compiling is not None:
        os.waitpid(compiling, 0)
    extractors = _load_extractors()
    _send(b'R', 0, {'extractors': len(extractors)})
    _Server(extractors, sandbox, settings).run()


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


def _start_compiling(package):
    """Compiles what importing would compile: in a process that may write, of which this one soon is none."""
    if not os.access(package, os.W_OK) or os.path.isfile(package):
        return None
    import linux
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            linux.die_with(parent, signal.SIGKILL)
            compileall.compile_dir(package, quiet=2)
        finally:
            os._exit(0)
    return pid


def _version_in(text):
    match = re.search(r"^__version__ = '([\d.]+)'", text, re.MULTILINE)
    if match is None:
        raise _Refusal('yt_dlp/version.py states no version')
    return match[1]


def _load_extractors():
    """
    Returns yt-dlp's extractors but the generic one and those that do not work, in yt-dlp's order: pairs of a function that
    tells whether a URL suits, and the extractor.
    """
    import yt_dlp.globals
    yt_dlp.globals.plugin_dirs.value = []
    from yt_dlp.extractor import gen_extractor_classes
    import extraction
    classes = [
        extractor for extractor in gen_extractor_classes()
        if extractor.ie_key() != 'Generic' and extractor.working()
    ]
    matchers = [(matches, extractor) for extractor in classes for matches in _matchers_of(extractor)]
    extraction.warm_up()
    # Objects that no collection touches stay shared with the processes.
    gc.collect()
    gc.freeze()
    return matchers


def _matchers_of(extractor):
    """
    Returns functions of which one is true for a URL that suits: the regular expressions alone if that is all that yt-dlp's own
    method tries, since with it a URL that none suits takes several times as long.
    """
    from yt_dlp.extractor.common import InfoExtractor
    extractor.suitable('https://example.com/')
    plain = all(
        getattr(getattr(extractor, name), '__func__', None) is getattr(InfoExtractor, name).__func__
        for name in ('suitable', '_match_valid_url')
    )
    expressions = vars(extractor).get('_VALID_URL_RE')
    return [each.match for each in expressions] if plain and expressions else [extractor.suitable]


class _Child:
    """A process with one extraction; `pipe` is where its answer comes from, `starter` runs sites' scripts for it."""

    def __init__(self, number, pid, pipe, starter):
        self.number = number
        self.pid = pid
        self.pipe = pipe
        self.starter = starter
        self.script_pipe = None
        self.asked = None

    def kill(self):
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # It has no group, or has ended.
        self.starter.kill()


class _Server:
    def __init__(self, extractors, sandbox, settings):
        self._extractors = extractors
        self._sandbox = sandbox
        self._settings = settings
        self._children = {}
        self._selector = selectors.DefaultSelector()
        self._pid = os.getpid()

    def run(self):
        self._selector.register(_SOCKET, selectors.EVENT_READ, self._receive)
        self._rest = b''
        self._is_open = True
        try:
            while self._is_open:
                for key, _ in self._selector.select():
                    # What came before may have closed it.
                    if self._selector.get_map().get(key.fd) is key:
                        key.data()
        except (BrokenPipeError, ConnectionResetError):
            pass  # The service has ended.
        finally:
            for child in self._children.values():
                child.kill()

    def _receive(self):
        data = os.read(_SOCKET, _CHUNK)
        self._is_open = bool(data)
        *lines, self._rest = (self._rest + data).split(b'\n')
        for line in lines:
            self._handle(json.loads(line))

    def _handle(self, request):
        number = request['id']
        if request['do'] == 'find':
            _send(b'F', number, self._find(request['url'], request['identify']))
        elif request['do'] == 'extract':
            self._start(number, request)
        elif number in self._children:
            self._children[number].kill()

    def _find(self, url, identify):
        """Returns the name of the first extractor that suits, as yt-dlp would choose it, and which video it sees in the URL."""
        signal.signal(signal.SIGPROF, _raise_timeout)
        signal.setitimer(signal.ITIMER_PROF, _FIND_LIMIT_S)
        try:
            found = next((each for matches, each in self._extractors if matches(url)), None)
            video = found.get_temp_id(url) if identify and found else None
            return {'name': found and found.IE_NAME, 'video': video and {'extractor': found.ie_key(), 'id': video[:200]}}
        except TimeoutError:
            return {'failure': f'matching the URL took over {_FIND_LIMIT_S} s'}
        except Exception as error:
            return {'failure': f'matching the URL failed with {type(error).__name__}'}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _start(self, number, request):
        from scripts import ScriptStarter
        source, target = os.pipe()
        near, far = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            _run_child(self._sandbox, self._pid, request, target, far.detach())
        os.close(target)
        far.close()
        limits = request['limits']
        starter = ScriptStarter(near, self._settings['node'], lambda: self._sandbox.confine_script(self._pid, limits))
        child = self._children[number] = _Child(number, pid, source, starter)
        self._selector.register(source, selectors.EVENT_READ, lambda: self._forward(child))
        self._selector.register(near, selectors.EVENT_READ, lambda: self._serve(child))
        _send(b'S', number, {'pid': pid})

    def _serve(self, child):
        """Does what an extraction asks for."""
        descriptors = []
        try:
            message, descriptors, flags, _ = socket.recv_fds(child.starter.socket, _MAX_REQUEST, 3)
            if flags & socket.MSG_CTRUNC:
                raise ValueError  # It has sent more of them: they would keep others from sending theirs.
            if message == _LISTENER and child.asked is None:
                self._start_answering(child, descriptors.pop())
            else:
                self._start_script(child, message, descriptors)
        except Exception:
            # It has ended, or has sent what no extraction sends.
            self._selector.unregister(child.starter.socket)
            child.kill()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _start_answering(self, child, listener):
        import seccomp
        from asked_calls import AskedCalls
        child.asked = AskedCalls(listener, seccomp.asked_numbers(), self._settings['proxyPort'])
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._answer(child))

    def _answer(self, child):
        from asked_calls import TooManyCalls
        try:
            is_open = child.asked.answer()
        except TooManyCalls:
            is_open = False
            child.kill()
        if not is_open:
            self._selector.unregister(child.asked.listener)

    def _start_script(self, child, message, descriptors):
        child.script_pipe = child.starter.receive(message, descriptors) or child.script_pipe
        if child.script_pipe is not None and child.script_pipe not in self._selector.get_map():
            self._selector.register(child.script_pipe, selectors.EVENT_READ, lambda: self._end_script(child))

    def _end_script(self, child):
        self._selector.unregister(child.script_pipe)
        os.close(child.script_pipe)
        child.script_pipe = None
        child.starter.collect()

    def _forward(self, child):
        data = os.read(child.pipe, _CHUNK)
        if data:
            _write_frame(b'D', child.number, data)
            return
        # Before the process id is free for others; also ends what the process has left.
        child.kill()
        _, status = os.waitpid(child.pid, 0)
        if child.script_pipe is not None:
            self._end_script(child)
        if child.starter.socket in self._selector.get_map():
            self._selector.unregister(child.starter.socket)
        child.starter.socket.close()
        if child.asked is not None:
            if child.asked.listener in self._selector.get_map():
                self._selector.unregister(child.asked.listener)
            child.asked.close()
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        del self._children[child.number]
        _send(b'E', child.number, {'signal': os.WTERMSIG(status) if os.WIFSIGNALED(status) else None})


def _raise_timeout(*_):
    raise TimeoutError


def _run_child(sandbox, parent, request, target, requests):
    """Extracts and ends the process, whatever happens."""
    try:
        if not sandbox.seccomp:
            # It could start processes, which end with their group.
            os.setsid()
        # As the service has started this process, its output is the null device.
        for descriptor in (0, 2):
            os.dup2(1, descriptor)
        target, requests = (fcntl.fcntl(each, fcntl.F_DUPFD, _REQUESTS_SOCKET + 1) for each in (target, requests))
        os.dup2(target, _SOCKET)
        os.dup2(requests, _REQUESTS_SOCKET)
        os.closerange(_REQUESTS_SOCKET + 1, sandbox.max_files)
        answer = memoryview(_answer(sandbox, parent, request))
        while answer:
            answer = answer[os.write(_SOCKET, answer):]
    finally:
        os._exit(0)


def _answer(sandbox, parent, request):
    import extraction
    import scripts
    try:
        server = socket.socket(fileno=_REQUESTS_SOCKET)
        scripts.ask_for_scripts(server)
        listener = sandbox.confine_extraction(parent, request['limits'])
        if listener != -1:
            scripts.send_descriptors(server, _LISTENER, [listener])
            os.close(listener)
    except Exception as error:
        return extraction.failure('SetUpError', f'{type(error).__name__}: {error}')
    return extraction.extract(request)


def _send(kind, number, value):
    _write_frame(kind, number, json.dumps(value).encode())


def _write_frame(kind, number, payload):
    """One byte for the kind, the number of the request and the payload's length as 32 bits, the payload."""
    frame = memoryview(struct.pack('>cII', kind, number, len(payload)) + payload)
    while frame:
        frame = frame[os.write(_SOCKET, frame):]


if __name__ == '__main__':
    try:
        main(sys.argv[1], json.loads(sys.argv[2]))
    except _Refusal as refusal:
        sys.exit(str(refusal))
