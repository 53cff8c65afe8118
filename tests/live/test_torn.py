"""What a sampler says is true, although it stops nothing and does not even read who cannot have moved.

Torn stacks: two chains of functions run in turn; a stack with parts of both, or with a hole, cannot exist.

PROBING_TORN_SAMPLES: how many samples for each program (the short form takes 4,000).
"""

import json
import os
import subprocess
import time

import pytest

SAMPLE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "sample")
SAMPLES = int(os.environ.get("PROBING_TORN_SAMPLES", "4000"))


def sample(pid, *options):
    done = subprocess.run([SAMPLE, str(pid), *map(str, options)], stdout=subprocess.PIPE, timeout=600, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("shape", ["own", "shared"])
def test_torn(start, python, shape):
    """At most 0.1 % impossible and 1 % dropped; without verification some are impossible: the program can tell."""
    if python.minor < (3, 8) or python.container:
        pytest.skip("the bar is for 3.8 and newer, seen from outside")
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two processors: the program has to run while it is read")
    target = start(python, "alternate.py", shape, 14)
    os.sched_setaffinity(target.pid, {max(allowed)})
    told = sample(target.pid, "--samples", SAMPLES, "--rate", 10000, "--seconds", 300)
    assert told["samples"] == SAMPLES
    assert told["impossible"] <= max(1, 0.001 * told["checked"]), told
    assert told["unstable"] + told["broken"] <= 0.01 * told["thread_samples"], told
    if shape == "shared":
        until = time.monotonic() + 120  # a machine that others keep busy runs the two by turns
        while time.monotonic() < until:
            once = sample(target.pid, "--samples", 500, "--rate", 10000, "--tries", 1)
            if once["impossible"] + once["broken"]:
                return
        raise AssertionError("no torn stack without verification: nothing was tested")


@pytest.mark.parametrize("program", ["restless.py", "swaps.py"])
def test_at_rest(start, python, program):
    """Threads that did not have the GIL are not read again: told the same as by one who never looked before."""
    if python.container:
        pytest.skip("stopped by its process id outside")
    target = start(python, program)
    told = sample(target.pid, "--samples", SAMPLES // 2, "--rate", 2000, "--stops", 20, "--seconds", 300)
    assert told["samples"] == SAMPLES // 2
    assert told["compared"] >= SAMPLES // 40 * (8 if program == "restless.py" else 2)
    assert told["differing"] == 0, told
