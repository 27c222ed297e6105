"""Tells which extractor of yt-dlp suits each URL, without a network.

usage: python suitable.py SCRIPT, where SCRIPT is yt-dlp's own, which knows where its package is. Reads a JSON list of
URLs from standard input and prints {"version": text, "count": number, "extractors": [name or null for each URL]}.
Extractors that are marked as not working and the generic one are left out.
"""
import contextlib
import io
import json
import runpy
import sys

urls = json.load(sys.stdin)
script = sys.argv[1]
sys.argv = [script, "--ignore-config", "--version"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    runpy.run_path(script, run_name="__main__")

from yt_dlp.extractor import list_extractor_classes  # noqa: E402
from yt_dlp.version import __version__  # noqa: E402

classes = [each for each in list_extractor_classes() if each.IE_NAME != "generic" and each.working()]


def find(url):
    return next((each.IE_NAME for each in classes if each.suitable(url)), None)


print(json.dumps({"version": __version__, "count": len(classes), "extractors": [find(url) for url in urls]}))
