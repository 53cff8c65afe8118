"""Another project's package of the name `probing`, which has files of the same names as ours.

pip knows nothing of that: whichever is installed last overwrites the other's.  Ours has its code in `probing_c`, which nobody else has, and
whatever part of it still runs looks for the other's files beside it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

SITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files of releases 0.1 and 0.2 of the other project, none of which is ours.
MARKS = ("probing_hook.py", "probing.pth", os.path.join("probing", "cli"), os.path.join("probing", "_core.abi3.so"))
REMEDY = "pip uninstall probing && pip install --force-reinstall probing-c"


def found():
    # type: () -> Optional[str]
    """The first of its files beside ours; None: there is none."""
    for mark in MARKS:
        path = os.path.join(SITE, mark)
        if os.path.lexists(path):
            return path
    return None


def message(path):
    # type: (str) -> str
    return "another project's package of the name probing is in this environment ({}); to have this one whole: {}".format(path, REMEDY)


def warned(who):
    # type: (str) -> bool
    """Say on standard error that it is there.  False: it is not."""
    path = found()
    if path is None:
        return False
    try:
        sys.stderr.write("{}: {}\n".format(who, message(path)))
    except (AttributeError, OSError, ValueError):  # a program without standard error
        pass
    return True
