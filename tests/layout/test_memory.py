"""Every interpreter reads its own objects at the offsets of its layout: memory.py, which runs inside."""

import json
import os
import subprocess

import pytest

import layouts


@pytest.mark.parametrize("python", layouts.interpreters(), ids=lambda python: python.id)
def test_own_objects(python):
    layout = {".".join(key): value for key, value in layouts.of_python(python).items()}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory.py")) as script:
        done = subprocess.run(python.command("-", json.dumps(layout)), stdin=script, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, timeout=240)
    *disagreements, last = done.stdout.splitlines() or [""]
    assert not disagreements
    assert done.returncode == 0 and last.startswith("checked ") and int(last.split()[1]) > 100, last
