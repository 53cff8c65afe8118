"""How much each thread holds the GIL: gil_pct of system.usage, looked at from outside as the query runs."""

from support.target import query

SHARES = "SELECT os_thread_id, scope, gil_pct FROM system.usage(1)"


def test_one_that_keeps_it(start, python):
    """hung.py: the main thread is in a native call with the GIL, two others want it, one sleeps."""
    target = start(python, "hung.py").settle()
    rows = query(target.pid, SHARES)
    shares = {row["os_thread_id"]: row["gil_pct"] for row in rows if row["scope"] == "thread"}
    assert len(shares) >= 4 and [row["gil_pct"] for row in rows if row["scope"] == "process"] == [None]
    if python.how in ("sharedt", "statict"):  # free-threaded
        assert set(shares.values()) == {None}
        return
    assert shares.pop(target.pid) == 100
    assert set(shares.values()) == {0}


def test_two_that_take_turns(start, any_python):
    """parking.py's threads compute and want it always: each has some looks, and no look is two threads'."""
    target = start(any_python, "parking.py", "daemons")
    rows = query(target.pid, "SELECT os_thread_id, gil_pct FROM system.usage(3) WHERE scope = 'thread'")
    shares = sorted(row["gil_pct"] for row in rows)
    assert 40 <= sum(shares) <= 100.001 and len([share for share in shares if share >= 5]) >= 2, shares
