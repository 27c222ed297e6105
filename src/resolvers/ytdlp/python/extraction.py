"""One extraction, in a process of its own: yt-dlp's options, its result and its failures."""

import io
import json

from info_dict import reduce_info
from playlist import PlaylistReader

_MAX_MESSAGE = 500
_MAX_WARNINGS = 20
_MAX_CHAIN = 10


class _WarningList:
    """A logger that keeps the first warnings: with `ignore_no_formats_error` they say why formats are missing."""

    def __init__(self):
        self.warnings = []

    def warning(self, message):
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(str(message)[:_MAX_MESSAGE])

    def debug(self, message):
        pass

    info = error = debug


def warm_up():
    """Extracts a page of its own without a request: later ones find modules loaded and patterns compiled."""
    page = '<title>A</title><video src="http://127.0.0.1/a.mp4"></video>'
    request = {'url': f'data:text/html,{page}', 'socketTimeoutS': 1, 'node': '', 'maxBytes': 100_000}
    extract(request | {'entries': {'start': 0, 'most': 1, 'ahead': 0}, 'proxy': 'http://127.0.0.1:9', 'cookies': ''})


def extract(request):
    """Returns what `request['url']` has, as JSON: `{"info": …}`, its `_warnings` added, or `{"failure": …}`."""
    logger = _WarningList()
    try:
        ydl = PlaylistReader(_options(request, logger), request['entries'])
        info = ydl.extract_info(request['url'], download=False)
        answer = {'info': reduce_info(info or {}) | {'_warnings': logger.warnings}}
    except BaseException as error:
        answer = {'failure': _describe(error)}
    text = json.dumps(answer, allow_nan=False)
    return text.encode() if len(text) <= request['maxBytes'] else failure('AnswerTooLarge', '')


def failure(name, message):
    """Returns the answer of an extraction that failed outside of yt-dlp."""
    return json.dumps({'failure': {'errors': [name], 'status': None, 'expected': False, 'message': message}}).encode()


def _options(request, logger):
    return {
        'quiet': True,
        'logger': logger,
        'skip_download': True,
        'cachedir': False,
        'noplaylist': True,
        'extract_flat': 'in_playlist',
        'ignore_no_formats_error': True,
        'format': 'all/b',
        'socket_timeout': request['socketTimeoutS'],
        'retries': 1,
        'extractor_retries': 1,
        'proxy': request['proxy'],
        'js_runtimes': {'node': {'path': request['node']}} if request['node'] else {},
        # yt-dlp saves its cookies where it read them: into this text, which ends with the process.
        'cookiefile': io.StringIO(request['cookies']) if request['cookies'] else None,
        # No program of others: they may know nothing of the proxy.
        'ffmpeg_location': '/nonexistent',
        'usenetrc': False,
        'enable_file_urls': False,
    }


def _describe(error):
    """Describes a failure by the names of its errors, outermost first."""
    chain = _chain(error)
    statuses = [status for cause in chain if isinstance(status := getattr(cause, 'status', None), int)]
    extractor = [cause for cause in chain if hasattr(cause, 'expected')]
    return {
        'errors': [type(cause).__name__ for cause in chain],
        'status': statuses[0] if statuses else None,
        'expected': bool(extractor and extractor[0].expected),
        'message': str(chain[-1] if not extractor else extractor[0])[:_MAX_MESSAGE],
    }


def _chain(error):
    """Returns `error` and what caused it; yt-dlp keeps causes in attributes of its own."""
    chain = []
    waiting = [error]
    while waiting and len(chain) < _MAX_CHAIN:
        error = waiting.pop(0)
        if not isinstance(error, BaseException) or error in chain:
            continue
        chain.append(error)
        exc_info = getattr(error, 'exc_info', None)
        waiting += [
            exc_info[1] if isinstance(exc_info, tuple) and len(exc_info) == 3 else None,
            getattr(error, 'cause', None),
            error.__cause__,
            error.__context__,
        ]
    return chain
