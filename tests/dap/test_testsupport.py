"""VS Code's own test client for adapters, `@vscode/debugadapter-testsupport`, with ours.

PROBING_NODE_MODULES: a node_modules folder with that package; else the build tree's node/node_modules.
"""

import json
import os
import shutil
import subprocess

import pytest

from debuggee import marks
from support.target import DEADLINE, PROBING, die_with_parent

MODULES = os.environ.get("PROBING_NODE_MODULES") or os.path.join(os.environ.get("BUILDDIR", "."), "node", "node_modules")
PACKAGE = "@vscode/debugadapter-testsupport"
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "testsupport.js")

pytestmark = pytest.mark.skipif(not shutil.which("node") or not os.path.isdir(os.path.join(MODULES, PACKAGE)),
                                reason="needs node and {} (./bootstrap check has them)".format(PACKAGE))


def run(scenario, program, python):
    """Run it; each line "say COMMAND" is passed on to the program."""
    told = {"pid": program.pid, "path": program.path, "probing": PROBING, "python": python.executable, "marks": marks()}
    child = subprocess.Popen(["node", SCRIPT, scenario, json.dumps(told)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(os.environ, NODE_PATH=MODULES), preexec_fn=die_with_parent, encoding="utf-8")
    said = []
    try:
        for line in child.stdout:
            if line.startswith("say "):
                said.append(line.split()[1])
                program.say(said[-1])
            else:
                assert line == "ok {}\n".format(scenario)
                break
        errors = child.stderr.read()
        assert child.wait(DEADLINE) == 0, errors
    finally:
        child.kill()
        child.wait(DEADLINE)
        child.stdout.close()
        child.stderr.close()
    for command in said:
        program.until("done " + command)


@pytest.mark.parametrize("scenario", ["breakpoint", "stepping", "values", "output", "exceptions", "unknown"])
def test_scenario(debuggee, python, scenario):
    program = debuggee(python)
    run(scenario, program, python)
    program.run("cold")


def test_launch(debuggee, any_python):
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    run("launch", debuggee(any_python), any_python)
