"""What the server sees by itself: since when a stack is as it is, and ten minutes of history."""

import time

import pytest

from serving import until


@pytest.fixture
def moved(start, any_python):
    return start(any_python, "moved.py")


def names(told, stack):
    return [told["frames"][at]["name"].rsplit(".", 1)[-1] for at in told["stacks"][stack]]


def threads_of(server, job):
    """{innermost function of a thread that is the target's: since}"""
    told = server.ask("/api/v1/p/{}/stacks".format(job.pid)).json
    return {next(name for name in names(told, thread["stack"]) if name in ("still", "before", "after")): thread["since"]
            for thread in told["threads"]}


def history(server, job, options=""):
    answer = server.ask("/api/v1/p/{}/history{}".format(job.pid, options))
    assert answer.status == 200, answer.text
    return answer.json


def replayed(told):
    """Each moment as {thread's name: names of its stack}, as a slider would show it."""
    shown, moments = {}, []
    for moment in told["moments"]:
        for thread, stack in moment["stacks"]:
            shown[told["threads"][thread]["name"]] = names(told, stack) if stack >= 0 else None
        moments.append(dict(shown))
    return moments


def seen(server, job):
    until(lambda: server.ask("/api/v1/p/{}/history".format(job.pid)).status == 200)


def test_since(server, moved):
    """Seconds since each thread's stack changed: 0 for who moved just now."""
    seen(server, moved)
    began = time.monotonic()
    until(lambda: min(value or 0 for value in threads_of(server, moved).values()) > 2)
    assert time.monotonic() - began > 1
    moved.child.stdin.write(b"\n")
    moved.child.stdin.flush()
    until(lambda: "after" in threads_of(server, moved))
    now = threads_of(server, moved)
    assert now["after"] < now["still"] - 1.5 and now["still"] > 2


def test_history(server, moved):
    seen(server, moved)
    until(lambda: len(history(server, moved)["moments"]) > 2)
    at = time.time()
    moved.child.stdin.write(b"\n")
    moved.child.stdin.flush()
    until(lambda: any("after" in (moment["MainThread"] or ()) for moment in replayed(history(server, moved))))
    until(lambda: history(server, moved)["moments"][-1]["time"] > at + 2)
    told = history(server, moved)
    moments = replayed(told)
    for moment, shown in zip(told["moments"], moments):
        assert "still" in shown["still"]
        assert moment["time"] > at or "before" in shown["MainThread"]
        assert moment["rss"] > 1 << 20 and moment["threads"] >= 2
    assert "after" in moments[-1]["MainThread"] and told["moments"][-1]["changed"] == 0
    assert sum(moment["changed"] for moment in told["moments"]) == 3  # two at first, one later
    assert told["moments"][0]["cpu"] is None and 0 <= told["moments"][-1]["cpu"] < 0.5
    times = [moment["time"] for moment in told["moments"]]
    assert times == sorted(times)
    part = history(server, moved, "?after={}".format(times[-2]))
    assert [moment["time"] for moment in part["moments"]] == times[-1:] or part["moments"][0]["time"] == times[-1]
    assert replayed(part)[-1] == moments[-1]  # whole by itself
    assert not history(server, moved, "?after={}&until={}".format(times[0] - 9, times[0] - 5))["moments"]


def test_history_of_ended(server, moved):
    """A process that ended is not forgotten."""
    seen(server, moved)
    identity = server.ask("/api/v1/p/{}".format(moved.pid)).json["id"]
    moved.end()
    told = server.ask("/api/v1/p/{}/history".format(identity)).json
    assert "before" in replayed(told)[-1]["MainThread"]


def test_refused(server, moved):
    assert server.ask("/api/v1/p/1/history").status in (403, 404)
    assert server.ask("/api/v1/p/file:x/history").status == 404
    assert server.ask("/api/v1/p/{}/history?after=x".format(moved.pid)).status == 400
    assert server.ask("/api/v1/p/{}.1/history".format(moved.pid)).status == 410


def cpu(pid):
    fields = open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_cost(serve, start, any_python):
    """At most 0.1 % of a core a process is the bar (tests/bench); here a bound that a busy machine keeps."""
    one = serve()
    jobs = [start(any_python, "moved.py") for _ in range(4)]
    for job in jobs:
        seen(one, job)
    watched = len([row for row in one.ask("/api/v1/processes").json["processes"]])
    before, began = cpu(one.pid), time.monotonic()
    time.sleep(5)
    share = (cpu(one.pid) - before) / (time.monotonic() - began)
    assert share < 0.01 * watched
