"""Training loops that say what they did: tests/targets/torch_loops.py and torch_frameworks.py."""

import json


def report(target):
    """What it measured since the last report."""
    target.child.stdin.write(b"\n")
    target.child.stdin.flush()
    return json.loads(target.line())
