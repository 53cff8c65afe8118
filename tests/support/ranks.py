"""A job of two live ranks that compute, without torch: tests/targets/ranks.py."""

import contextlib
import os
import subprocess
import sys

from . import rings
from .target import DEADLINE, TARGETS


@contextlib.contextmanager
def two_ranks(**environment):
    """Their pids."""
    child = subprocess.Popen([sys.executable, os.path.join(TARGETS, "ranks.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=dict(os.environ, **environment))
    try:
        yield [int(word) for word in child.stdout.readline().split()[2:4]]
    finally:
        child.kill()
        child.communicate(timeout=DEADLINE)


@contextlib.contextmanager
def two_ranks_with_tables(data):
    """(pids, write(rank, table, columns, rows)): their tables are below the data folder."""
    with two_ranks(PROBING_DATA_DIR=str(data)) as pids:
        yield pids, lambda rank, *table: rings.write(rings.folder_of(data, pids[rank]), *table)
