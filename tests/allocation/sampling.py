"""Switching sampled allocations on and off, and telling targets/allocating.py what to allocate."""

import json

from support.injection import wait_until
from support.target import probing

PERIOD = "16KiB"


def config(pid, *settings):
    """The first one loads the probe, and says so."""
    for setting in settings:
        done = probing(pid, "config", setting, check=False)
        assert done.returncode == 0, done.stderr


def note(pid):
    """What a query says beside its rows, such as that the hooks are not in yet: they wait for the GIL."""
    return probing(pid, "query", "SELECT count(*) FROM memory_allocations", check=False).stderr


def switch_on(pid, period=PERIOD):
    config(pid, "probing.memory.period=" + period, "probing.memory.samples=100000", "probing.memory.profile=on")
    wait_until(lambda: not note(pid))


def switch_off(pid):
    config(pid, "probing.memory.profile=off")
    wait_until(lambda: "switched off at" in note(pid))


def tell(target, *command):
    target.child.stdin.write((" ".join(map(str, command)) + "\n").encode())
    target.child.stdin.flush()
    return json.loads(target.line())


def near(estimate, truth, samples):
    """Within five standard deviations of an estimate that rests on so many samples."""
    return abs(estimate - truth) <= 5 * truth / samples ** 0.5
