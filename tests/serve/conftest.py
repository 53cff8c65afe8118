"""A server for the tests of a file; a job to look at."""

import pytest

from serving import Server


@pytest.fixture(scope="module")
def server():
    """A server with TCP on a free port; it must end well."""
    one = Server()
    yield one
    status = one.end()
    one.remove()
    assert status == 0


@pytest.fixture
def serve():
    """serve(*options): a server of its own; ended with the test."""
    started = []

    def begin(*options, **more):
        started.append(Server(*options, **more))
        return started[-1]

    yield begin
    for one in started:
        one.end()
        one.remove()


@pytest.fixture
def job(start, any_python):
    return start(any_python, "threads.py").settle()


@pytest.fixture
def moved(start, any_python):
    """One thread stands still, the main one goes on at a line; both have come to where they wait."""
    return start(any_python, "moved.py").settle()
