"""What the server sees by itself: since when a stack is as it is, and ten minutes of history."""

import os
import time

from serving import until


def names(told, stack):
    return [told["frames"][at]["name"].rsplit(".", 1)[-1] for at in told["stacks"][stack]]


def threads_of(server, job):
    """{innermost function of a thread that is the target's: since}; None is between two of them."""
    told = server.ask("/api/v1/p/{}/stacks".format(job.pid)).json
    return {next((name for name in names(told, thread["stack"]) if name in ("still", "before", "after")), None): thread["since"]
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
    """Until there is a moment: it is known before that."""
    until(lambda: server.ask("/api/v1/p/{}/history".format(job.pid)).json.get("moments"))


def ran(job):
    """Seconds since it was started."""
    with open("/proc/{}/stat".format(job.pid)) as stat, open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")


def test_since(server, moved):
    """Seconds since each thread's stack changed: 0 for who moved just now."""
    seen(server, moved)
    until(lambda: min(value or 0 for value in threads_of(server, moved).values()) > 2)
    assert max(threads_of(server, moved).values()) < ran(moved) + 1
    moved.child.stdin.write(b"\n")
    moved.child.stdin.flush()
    until(lambda: "after" in threads_of(server, moved))
    now = threads_of(server, moved)
    assert now["after"] < now["still"] - 1.5 and now["still"] > 2


def test_history(serve, moved):
    server = serve(of=moved.pid)  # which has not seen it begin
    seen(server, moved)
    until(lambda: len(history(server, moved)["moments"]) > 2)
    at = time.time()
    moved.child.stdin.write(b"\n")
    moved.child.stdin.flush()
    until(lambda: any("after" in (moment["MainThread"] or ()) for moment in replayed(history(server, moved))))
    told = {}
    until(lambda: told.update(history(server, moved)) or (told["moments"][-1]["changed"] == 0 and "after" in (replayed(told)[-1]["MainThread"] or ())))
    moments = replayed(told)
    for moment, shown in zip(told["moments"], moments):
        assert "still" in shown["still"]
        assert moment["time"] > at or "before" in shown["MainThread"]
        assert moment is told["moments"][0] or moment["changed"] == len(moment["stacks"])
        assert moment["rss"] > 1 << 20 and moment["threads"] >= 2
    assert told["moments"][0]["changed"] == 2 and sum(moment["changed"] for moment in told["moments"]) >= 3  # it may be seen on its way, too
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
    until(lambda: "before" in (replayed(history(server, moved))[-1].get("MainThread") or ()))  # it may have been seen when it began
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
    jobs = [start(any_python, "moved.py").settle() for _ in range(4)]
    one = serve(of=jobs[0].pid)  # whatever else begins and ends meanwhile
    for job in jobs[1:]:
        assert one.post("/api/v1/targets", {"pid": job.pid}).status == 200
    for job in jobs:
        seen(one, job)
    before, began = cpu(one.pid), time.monotonic()
    time.sleep(5)
    share = (cpu(one.pid) - before) / (time.monotonic() - began)
    assert share < 0.01 * len(jobs)
