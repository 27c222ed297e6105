"""Reduces yt-dlp's info dict to the fields that the service reads, as plain JSON."""

import itertools
import math

_MAX_TEXT = 100_000
_MAX_ITEMS = 500
_MAX_FORMATS = 2_000
_MAX_FRAGMENTS = 500_000
_MAX_TRACKS = 20

_PAGE = (
    '_type', '_has_drm', 'id', 'webpage_url', 'extractor', 'extractor_key', 'title', 'fulltitle', 'description', 'duration',
    'timestamp', 'upload_date', 'uploader', 'uploader_url', 'channel', 'channel_url', 'thumbnail', 'view_count',
    'like_count', 'live_status', 'age_limit', 'series', 'season_number', 'episode_number', '_count', '_has_more',
)
_ENTRY = ('_type', 'id', 'ie_key', 'url', 'webpage_url', 'title', 'duration', 'timestamp', 'upload_date')
_FORMAT = (
    'format_id', 'url', 'manifest_url', 'protocol', 'ext', 'width', 'height', 'fps', 'vcodec', 'acodec', 'tbr',
    'filesize', 'filesize_approx', 'language', 'language_preference', 'format_note', 'has_drm', 'cookies',
    'fragment_base_url',
)
# What only yt-dlp's own downloader can request; only the names are passed on.
_DEMANDS = (
    'request_data', 'hls_media_playlist_data', 'hls_aes', 'extra_param_to_segment_url', 'extra_param_to_key_url',
)
# The `_type`s of dicts with entries.
PLAYLISTS = ('playlist', 'multi_video', 'compat_list')


def reduce_info(info):
    """
    Returns an info dict with known keys only and their shapes unchanged: text, finite numbers, booleans.
    Keeps the entries, a single one in full, and the last (best) 2,000 formats, 500 thumbnails, 500
    chapters, and 20 subtitles of a language.
    """
    result = _pick(info, _PAGE) | _reduce_format(info)
    if info.get('_type') in PLAYLISTS:
        entries = [entry if isinstance(entry, dict) else {} for entry in _items(info.get('entries'), None)]
        is_single = len(entries) == 1 and entries[0].get('_type') not in PLAYLISTS
        result['entries'] = [reduce_info(entry) if is_single else _reduce_entry(entry) for entry in entries]
    if info.get('formats') is not None:
        formats = _dicts(info['formats'], None)[-_MAX_FORMATS:]
        result['formats'] = [_reduce_format(format) for format in formats]
    result['thumbnails'] = [
        _pick(thumbnail, ('url', 'width', 'height'))
        for thumbnail in _dicts(info.get('thumbnails'), None)[-_MAX_ITEMS:]
    ]
    for name in ('subtitles', 'automatic_captions'):
        result[name] = _reduce_subtitles(info.get(name))
    result['chapters'] = [
        _pick(chapter, ('start_time', 'end_time', 'title')) for chapter in _dicts(info.get('chapters'), _MAX_ITEMS)
    ]
    result['tags'] = [tag for tag in map(_scalar, _items(info.get('tags'), _MAX_ITEMS)) if isinstance(tag, str)]
    return result


def _reduce_entry(entry):
    """Its picture is the best one, which is the last of several."""
    thumbnails = [entry, *({'thumbnail': each.get('url')} for each in _dicts(entry.get('thumbnails'), None))]
    pictures = [picture for each in thumbnails if (picture := _pick(each, ('thumbnail',)))]
    return _pick(entry, _ENTRY) | (pictures[-1] if pictures else {})


def _reduce_format(format):
    result = _pick(format, _FORMAT) | {key: True for key in _DEMANDS if format.get(key)}
    headers = format.get('http_headers')
    if isinstance(headers, dict):
        result['http_headers'] = _pick(headers, list(headers)[:50])
    options = format.get('downloader_options')
    if isinstance(options, dict):
        result['downloader_options'] = _pick(options, ('http_chunk_size',))
    # A manifest lists its segments better.
    if not format.get('manifest_url'):
        fragments = _dicts(format.get('fragments'), _MAX_FRAGMENTS)
        if fragments:
            result['fragments'] = '\n'.join(map(_fragment_line, fragments))
    return result


def _fragment_line(fragment):
    """Returns duration and URL as a line: the service parses one text sooner than 500,000 objects."""
    duration = _scalar(fragment.get('duration'))
    texts = (value for key in ('url', 'path') if isinstance(value := _scalar(fragment.get(key)), str))
    # URLs have no line breaks (WHATWG URL §4.4).
    url = next(texts, '').replace('\r', '').replace('\n', '')
    return f"{'' if isinstance(duration, (str, bool)) or duration is None else duration} {url}"


def _reduce_subtitles(subtitles):
    if not isinstance(subtitles, dict):
        return {}
    return {
        str(language): [_pick(track, ('url', 'ext', 'name', 'protocol')) for track in _dicts(tracks, None)[-_MAX_TRACKS:]]
        for language, tracks in list(subtitles.items())[:_MAX_ITEMS]
    }


def _pick(source, keys):
    """Returns what `source` has under `keys`, without what is no text, number or boolean."""
    values = ((key, _scalar(source.get(key))) for key in keys)
    return {str(key): value for key, value in values if value is not None}


def _scalar(value):
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    if isinstance(value, (bool, int)):
        return value if abs(value) < 2 ** 53 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None


def _dicts(values, most):
    return [value for value in _items(values, most) if isinstance(value, dict)]


def _items(values, most):
    """Returns the first items of a list, or of any other iterable such as a generator; all if `most` is None."""
    if values is None or isinstance(values, (str, bytes, dict)):
        return []
    return list(itertools.islice(values, most))
