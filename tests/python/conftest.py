"""Fixtures of the package's tests."""

import os
import shutil
import tempfile

import pytest

import package
from support import pythons


def pytest_generate_tests(metafunc):
    if "installed" in metafunc.fixturenames:
        found = [python for python in pythons.found() if not python.container and "jit" not in python.how]
        metafunc.parametrize("installed", found, ids=[python.id for python in found], scope="session", indirect=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel, with a stand-in for libprobe.so that writes down what it is asked."""
    return package.make_wheel(str(tmp_path_factory.mktemp("wheel")), package.FAKE)


@pytest.fixture(scope="session")
def installed(request, wheel):
    """Each interpreter found, with the package."""
    python = request.param
    folder = tempfile.mkdtemp(prefix="probing-tests-", dir=os.path.join(python.root or "/", "tmp"))
    yield package.Installed(python, wheel, folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def fresh(wheel, tmp_path):
    """One interpreter, with a package of its own that a test may break."""
    found = [python for python in pythons.found() if python.root is None]
    if not found:
        pytest.skip("no interpreter to look at")
    return package.Installed(found[len(found) // 2], wheel, str(tmp_path))
