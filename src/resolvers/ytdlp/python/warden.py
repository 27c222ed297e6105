"""
Kills a process group when its standard input is closed, as it is when the service ends, however that happens.

usage: python -I warden.py GROUP
"""

import os
import signal
import sys

for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
os.read(0, 1)
try:
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
except ProcessLookupError:
    pass  # It has ended.
