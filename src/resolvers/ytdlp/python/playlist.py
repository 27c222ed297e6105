"""Reads a part of a playlist: the rest of it is neither requested nor kept."""

import itertools
import threading

from info_dict import PLAYLISTS
from yt_dlp import YoutubeDL
from yt_dlp.utils import PagedList

# They stay as they are: no entry is requested.
_LINKS = ('url', 'url_transparent')
# Of a playlist within a playlist.
_MAX_INNER_ENTRIES = 200
# How long further entries are read, seconds.
_AHEAD_S = 3


class PlaylistReader(YoutubeDL):
    """
    Resolves of a playlist only `most` entries after the first `start`, and up to `ahead` further ones if a later call would
    have to walk past them again. It then has `_has_more`, and as `_count` the number of all entries, if that is known.
    """

    def __init__(self, params, entries):
        super().__init__(params)
        self._start = entries['start']
        self._most = entries['most']
        self._ahead = entries['ahead']

    def process_ie_result(self, ie_result, download=True, extra_info=None):
        entries = ie_result.get('entries')
        is_inner = 'playlist' in (extra_info or {})
        if is_inner and ie_result.get('_type') in _LINKS:
            return ie_result
        if ie_result.get('_type') in PLAYLISTS and entries is not None:
            ie_result = ie_result | (_inner_part(entries) if is_inner else self._part(ie_result))
        return super().process_ie_result(ie_result, download, extra_info)

    def _part(self, playlist):
        entries = playlist['entries']
        rest = _entries_from(entries if isinstance(entries, PagedList) else _flat(entries), self._start)
        found = list(itertools.islice(rest, self._most + 1))
        has_more = len(found) > self._most
        if has_more and not isinstance(entries, PagedList):
            has_more = _read_ahead(rest, found, self._ahead)
        count = len(entries) if isinstance(entries, list) else playlist.get('playlist_count')
        if isinstance(entries, list) and any(map(_is_list, entries)):
            count = None
        return {'entries': found[:-1] if has_more else found, '_has_more': has_more, '_count': count}


def _read_ahead(entries, found, most):
    """
    Adds to `found`. Returns whether there may be more; what keeps them from being read, such as a site that does not respond, is for
    the call that asks for them.
    """
    ahead = []
    ends = []

    def read():
        try:
            for _ in range(most):
                ahead.append(next(entries))
        except StopIteration:
            ends.append(True)
        except Exception:
            pass

    # A thread can be left alone; it ends with the process.
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(_AHEAD_S)
    is_late = reader.is_alive()
    found += ahead[:]
    return is_late or not ends


def _inner_part(entries):
    return {'entries': list(itertools.islice(_entries_from(entries, 0), _MAX_INNER_ENTRIES))}


def _is_list(entry):
    return isinstance(entry, dict) and entry.get('_type') in PLAYLISTS and entry.get('entries') is not None


def _flat(entries):
    """Yields the entries of playlists within a playlist in their place: those of the tabs of a channel."""
    for entry in entries:
        if _is_list(entry):
            yield from _flat(_entries_from(entry['entries'], 0))
        else:
            yield entry


def _entries_from(entries, start):
    """Yields the entries after the first `start`. Of those before, only what a generator yields has to be requested."""
    if not isinstance(entries, PagedList):
        yield from itertools.islice(entries, start, None)
        return
    for index in itertools.count(start):
        try:
            entry = entries[index]
        except PagedList.IndexError:
            return
        yield entry
